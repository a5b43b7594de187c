/** Sources that the mesh configuration names: they come and go while the service runs. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { compare } from '../../src/model/order.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { until } from '../harness/until.ts'

interface Shown {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: { readonly hosts: readonly string[] }
}

describe('configSources', () => {
  let dir: string
  let control: LocalDiscovery
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'mesh-sources-'))
    for (const name of ['a', 'b']) mkdirSync(join(dir, name))
    control = new LocalDiscovery({ mode: 'threads' }, { PILOT_MOCK_SERVICES: '0' })
  })
  afterEach(async () => {
    await control.dispose()
    rmSync(dir, { recursive: true })
  })

  const entry = (name: string, host: string) =>
    `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ns}\nspec: {hosts: [${host}], ports: [{number: 80, name: http}]}\n`
  const put = (file: string, ...documents: string[]) => writeFileSync(join(dir, file), documents.join('---\n'))
  const mesh = (...sources: string[]) =>
    control.write(
      'mesh',
      `configSources: ${JSON.stringify(sources.map((name) => ({ address: name.includes(':') ? name : `fs://${join(dir, name)}` })))}`,
    )
  const start = () => control.start({ meshConfig: join(control.dir, 'mesh'), writers: 1, monitoringAddr: '' })
  /** The hosts of the objects in force, as `<name>=<host>`. */
  const hosts = async () =>
    (await control.debug<Shown[]>('configz'))
      .flatMap(({ kind, metadata, spec }) => (kind === 'ServiceEntry' ? `${metadata.name}=${spec.hosts[0]}` : []))
      .sort()
  const have = (what: string, ...expected: string[]) => until(what, async () => JSON.stringify(await hosts()) === JSON.stringify(expected))
  const actors = () => control.service.supervisor.states().flatMap(({ name }) => (name.startsWith('source/fs/') ? name : []))
  const actorOf = (name: string) => `source/fs${join(dir, name)}`

  it('are read beside --configDir, and are added and removed while the service runs', async () => {
    put('a/one.yaml', entry('one', 'a.test'))
    put('b/two.yaml', entry('two', 'b.test'))
    control.write('own.yaml', entry('own', 'own.test'))
    mesh('a')
    await (await start()).ready()
    expect(await hosts()).to.deep.equal(['one=a.test', 'own=own.test'])
    expect(actors()).to.deep.equal([actorOf('a')])
    mesh('a', 'b', 'fs://relative', 'a')
    await have('those of the new source', 'one=a.test', 'own=own.test', 'two=b.test')
    const page = await control.debug<{ sources: { source: string; files: number; isComplete: boolean }[]; problems: string[] }>('filez')
    expect(
      page.sources.toSorted((one, other) => compare(one.source, other.source)).map(({ source, files, isComplete }) => [source, files, isComplete]),
    ).to.deep.equal([
      ['files', 1, true],
      [`fs://${join(dir, 'a')}`, 1, true],
      [`fs://${join(dir, 'b')}`, 1, true],
    ])
    expect(page.problems.join('\n')).to.include('field configSources[2].address: "fs://relative" names a host').and.to.include('is the directory of')
    const metrics = await (await fetch(`http://127.0.0.1:${control.httpPort}/metrics`)).text()
    expect(metrics).to.include(`pilot_config_source_complete{source="fs://${join(dir, 'b')}"} 1`)
    put('b/two.yaml', entry('two', 'changed.test'))
    await have('the change', 'one=a.test', 'own=own.test', 'two=changed.test')
    const startOfB = control.state(actorOf('b')).startedAt
    mesh('b')
    await have('those of the removed source to go', 'own=own.test', 'two=changed.test')
    await until('its actor to go', () => JSON.stringify(actors()) === JSON.stringify([actorOf('b')]))
    // The file was empty for a moment whenever it was written, which removed nothing.
    expect(control.state(actorOf('b')).startedAt).to.equal(startOfB)
    control.write('mesh', '')
    await have('those of the last to go', 'own=own.test')
    mesh('a')
    await have('those of the first again', 'one=a.test', 'own=own.test')
  })

  it('define objects in the order of the mesh configuration, and a removed one brings back the definition of the next', async () => {
    put('a/one.yaml', entry('one', 'a.test'))
    put('b/one.yaml', entry('one', 'b.test'))
    control.write('own.yaml', entry('own', 'own.test'))
    mesh('a', 'b')
    await (await start()).ready()
    expect(await hosts()).to.deep.equal(['one=a.test', 'own=own.test'])
    mesh('b', 'a')
    await have('that of the first', 'one=b.test', 'own=own.test')
    put('a/own.yaml', entry('own', 'a.test'))
    mesh('a')
    await have('that of the other, and that of --configDir', 'one=a.test', 'own=own.test')
    control.remove('own.yaml')
    await have('that of the source', 'one=a.test', 'own=a.test')
    mesh()
    await have('nothing')
  })

  it('that are there at the start are waited for, and later ones are not', async () => {
    put('a/one.yaml', entry('one', 'a.test'))
    symlinkSync('nothing', join(dir, 'a/link.yaml'))
    symlinkSync('nothing', join(dir, 'b/link.yaml'))
    mesh('a')
    await start()
    await until('the reasons', async () => {
      const { text } = await control.ready()
      return text.includes(join(dir, 'a/link.yaml')) && text.includes(`${actorOf('a')} has not delivered its complete state yet`)
    })
    expect(await control.ready()).to.include({ status: 503 })
    rmSync(join(dir, 'a/link.yaml'))
    await control.service.ready()
    mesh('a', 'b')
    await until('the new source', async () => (await control.ready()).text.includes(`${actorOf('b')} has not delivered its complete state yet`))
    expect(await control.ready()).to.include({ status: 200 })
    // A push queue that starts again waits for the sources whose objects it had, and for no other.
    control.service.supervisor.kill('push-queue')
    put('a/one.yaml', entry('one', 'changed.test'))
    await until('the push queue to run again', () => control.state('push-queue').restarts === 1 && control.state('push-queue').state === 'running')
    await have('the objects', 'one=changed.test')
    put('b/two.yaml', entry('two', 'b.test'))
    rmSync(join(dir, 'b/link.yaml'))
    await have('those of the new source', 'one=changed.test', 'two=b.test')
    await until('that all is well', async () => !(await control.ready()).text.includes('delivered'))
  })

  it('that are no longer named before the first push are not waited for', async () => {
    symlinkSync('nothing', join(dir, 'a/link.yaml'))
    mesh('a')
    await start()
    await until('the reason', async () => (await control.ready()).text.includes(`${actorOf('a')} has not delivered`))
    mesh()
    await control.service.ready()
    expect(await hosts()).to.deep.equal([])
  })

  it('keep their objects when their actors, the watcher or the push queue die, and lose nothing of a directory that is moved away', async () => {
    put('a/one.yaml', entry('one', 'a.test'))
    put('b/two.yaml', entry('two', 'b.test'))
    mesh('a', 'b')
    await (await start()).ready()
    for (const name of [actorOf('a'), 'source/files', 'push-queue', actorOf('b')]) {
      const before = control.state(name).restarts
      control.service.supervisor.kill(name)
      await until(`${name} to run again`, () => control.state(name).state === 'running' && control.state(name).restarts > before)
      await have('all objects', 'one=a.test', 'two=b.test')
      expect(actors()).to.deep.equal([actorOf('a'), actorOf('b')])
    }
    rmSync(join(dir, 'a'), { recursive: true })
    put('b/two.yaml', entry('two', 'changed.test'))
    await have('the change', 'one=a.test', 'two=changed.test')
  })
})
