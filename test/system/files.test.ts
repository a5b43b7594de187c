import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { askServer } from '../../actors/http/admin-request.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const entry = (name: string) => `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: default}
spec:
  hosts: [${name}.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.1}]
`

describe('configuration files', () => {
  const service = new Service()
  const path = (...parts: string[]) => join(service.dir, ...parts)
  const objects = async () => (await service.debug<{ metadata: { name: string } }[]>('configz')).map((object) => object.metadata.name).sort()
  const become = (...names: string[]) =>
    until(`the objects to be ${names.join()}`, async () => JSON.stringify(await objects()) === JSON.stringify([...names].sort()))

  before(() => service.start())
  after(() => service.dispose())

  it('are found in directories that are created later, at any depth, and removed with them', async () => {
    mkdirSync(path('one', 'two', 'three'), { recursive: true })
    writeFileSync(path('one', 'two', 'three', 'a.yaml'), entry('a'))
    await become('a')
    writeFileSync(
      path('one', 'two', 'b.json'),
      JSON.stringify({
        apiVersion: 'networking.mesh.io/v1',
        kind: 'Sidecar',
        metadata: { name: 'b', namespace: 'x' },
        spec: { egress: [{ hosts: ['./*'] }] },
      }),
    )
    await become('a', 'b')
    writeFileSync(path('one', 'two', 'three', 'c.yaml'), entry('c'))
    await become('a', 'b', 'c')
    rmSync(path('one', 'two', 'three'), { recursive: true })
    await become('b')
    mkdirSync(path('one', 'two', 'three'))
    writeFileSync(path('one', 'two', 'three', 'd.yaml'), entry('d'))
    await become('b', 'd')
  })

  it('are followed when a directory is renamed', async () => {
    renameSync(path('one'), path('moved'))
    writeFileSync(path('moved', 'e.yaml'), entry('e'))
    await become('b', 'd', 'e')
    rmSync(path('moved'), { recursive: true })
    await become()
  })

  it('are replaced atomically when a symbolic link changes its target, as in mounted volumes', async () => {
    for (const version of ['v1', 'v2']) mkdirSync(path('mount', `..${version}`), { recursive: true })
    writeFileSync(path('mount', '..v1', 'x.yaml'), entry('first'))
    writeFileSync(path('mount', '..v2', 'x.yaml'), entry('second'))
    symlinkSync('..v1', path('mount', '..data'))
    symlinkSync(join('..data', 'x.yaml'), path('mount', 'x.yaml'))
    await become('first')
    symlinkSync('..v2', path('mount', '..next'))
    renameSync(path('mount', '..next'), path('mount', '..data'))
    await become('second')
  })

  it('are ignored in hidden directories of a mounted volume', async () => {
    mkdirSync(path('..hidden'))
    writeFileSync(path('probe.yaml'), entry('probe'))
    await become('second', 'probe')
    writeFileSync(path('..hidden', 'z.yaml'), entry('hidden'))
    writeFileSync(path('probe.yaml'), entry('another'))
    await become('second', 'another')
    rmSync(path('probe.yaml'))
    await become('second')
  })

  it('count as invalid as long as they have errors', async () => {
    const invalid = async () => Number(/^pilot_config_documents_invalid(?:\{[^}]*\})? (\d+)/m.exec(await service.metrics())?.[1])
    service.write('bad.yaml', `${entry('bad')}---\nkind: [`)
    await until('the document to count', async () => (await invalid()) === 1)
    service.write('bad.yaml', entry('bad'))
    await until('it to count no longer', async () => (await invalid()) === 0)
    expect(await objects()).to.deep.equal(['bad', 'second'])
  })
})

describe('files named by flags, and unreadable files', () => {
  const service = new Service()
  after(() => service.dispose())
  const names = async () => (await service.debug<{ metadata: { name: string } }[]>('configz')).map((object) => object.metadata.name).sort()
  const holds = (...wanted: string[]) => until(`the objects to be ${wanted.join()}`, async () => (await names()).join() === wanted.join())
  const says = (text: string) => service.output.says(text)

  it('must exist at start: the error names flag and path', async () => {
    const refused = async (flag: string, path: string, reason: string) => {
      const { code, stderr, stdout } = await runCommand([
        'discovery',
        '--registries',
        'Mock',
        `--${flag}`,
        path,
        '--grpcAddr',
        '127.0.0.1:0',
        '--httpAddr',
        '127.0.0.1:0',
        '--monitoringAddr',
        '',
      ])
      expect(code).not.to.equal(0)
      expect(stderr + stdout).to.contain(`--${flag}: ${path}: ${reason}`)
    }
    await refused('meshConfig', '/no/such/file', 'there is no such file')
    await refused('networksConfig', '/no/such/file', 'there is no such file')
    await refused('configDir', '/no/such/directory', 'there is no such directory')
    await refused('configDir', process.execPath, 'is a file, not a directory')
    await refused('meshConfig', service.dir, 'is a directory, not a file')
    execFileSync('mkfifo', [join(service.dir, 'given')])
    await refused('networksConfig', join(service.dir, 'given'), 'is a pipe, a socket or a device, not a file')
  })

  it('keep their objects in force with a log line if the directory is removed', async () => {
    // The admin socket is in the directory too, which is not made for it: an empty one would mean that everything was removed.
    const other = new Service()
    try {
      other.write('a.yaml', entry('stays'))
      await other.start()
      const held = async () => (await other.debug<{ metadata: { name: string } }[]>('configz')).map((object) => object.metadata.name)
      expect(await held()).to.deep.equal(['stays'])
      renameSync(other.dir, `${other.dir}-gone`)
      await other.output.says(/cannot read the configuration directory .*; the objects of its files stay/)
      await other.output.says(`${other.dir} is gone, and is not made for the socket`)
      expect(existsSync(other.dir)).to.equal(false)
      const moved = { ...other.env, MESHD_ADMIN_SOCKET: join(`${other.dir}-gone`, '.run/admin.sock') }
      expect((await askServer({ method: 'GET', path: '/debug/configz' }, moved)).body).to.include('"stays"')
      renameSync(`${other.dir}-gone`, other.dir)
      rmSync(join(other.dir, '.run'), { recursive: true })
      await other.output.says(/the socket was removed or replaced; the server listens on it again/)
      expect(await held()).to.deep.equal(['stays'])
    } finally {
      rmSync(`${other.dir}-gone`, { recursive: true, force: true })
      await other.dispose()
    }
  })

  it('are watched again after their directory was renamed and came back, or was replaced', async () => {
    const other = new Service()
    const [away, old] = [`${other.dir}-away`, `${other.dir}-old`]
    const names = async () => (await other.debug<{ metadata: { name: string } }[]>('configz')).map((object) => object.metadata.name).sort()
    const become = (...expected: string[]) => until(`the objects ${expected.join()}`, async () => (await names()).join() === expected.join())
    try {
      other.write('a.yaml', entry('a'))
      await other.start()
      renameSync(other.dir, away)
      await other.output.says('cannot read the configuration directory')
      renameSync(away, other.dir)
      other.write('b.yaml', entry('b'))
      await become('a', 'b')
      other.write('c.yaml', entry('c'))
      await become('a', 'b', 'c')
      mkdirSync(away)
      writeFileSync(join(away, 'd.yaml'), entry('d'))
      renameSync(other.dir, old)
      renameSync(away, other.dir)
      await become('d')
      other.write('e.yaml', entry('e'))
      await become('d', 'e')
    } finally {
      for (const dir of [away, old]) rmSync(dir, { recursive: true, force: true })
      await other.dispose()
    }
  })

  it('are read once if a symbolic link leads back to their directory, with one log line', async () => {
    const other = new Service()
    try {
      mkdirSync(join(other.dir, 'sub'))
      symlinkSync('.', join(other.dir, 'loop'))
      await other.start()
      for (let turn = 0; turn < 10; turn++) {
        symlinkSync('.', join(other.dir, 'next'))
        renameSync(join(other.dir, 'next'), join(other.dir, 'loop'))
        other.write('sub/turn.yaml', entry(`turn-${turn}`))
        await until('the file of the turn', async () =>
          (await other.debug<unknown[]>(`configz`)).some((object) => JSON.stringify(object).includes(`turn-${turn}`)),
        )
      }
      process.kill(other.pid, 'SIGHUP')
      await other.output.says('configuration files read again')
      await other.output.says(/links to directories are not followed, .*: loop$/m, 1, 1)
      other.output.lacks('already defines it')
    } finally {
      await other.dispose()
    }
  })

  it('keep their settings in force with a log line if they are removed', async () => {
    service.write('mesh-config', 'rootNamespace: given')
    service.write('networks', 'networks: {net: {endpoints: [{fromRegistry: r}]}}')
    await service.start()
    const root = async () => (await service.debug<{ rootNamespace: string }>('mesh')).rootNamespace
    expect(await root()).to.equal('given')
    service.remove('mesh-config')
    await says(`${join(service.dir, 'mesh-config')}: the file is gone; the settings in force stay`)
    expect(await root()).to.equal('given')
    service.write('mesh-config', 'rootNamespace: again')
    await until('the new root namespace', async () => (await root()) === 'again')
    service.remove('networks')
    await says(`${join(service.dir, 'networks')}: the file is gone; the settings in force stay`)
  })

  it('lose no object because of an error in another document or because of their size', async () => {
    service.write('several.yaml', ['one', 'two', 'three'].map(entry).join('---\n'))
    await holds('one', 'three', 'two')
    service.write('several.yaml', [entry('one'), entry('two').replace('hosts: [', 'hosts: ['.repeat(2)), entry('three')].join('---\n'))
    await says('several.yaml, document 2, ServiceEntry/default/two: not YAML')
    await holds('one', 'three', 'two')
    // Replaced in one step: half of a large file could be a valid file.
    service.write('large', `${entry('one')}#${' '.repeat(33 * 1024 * 1024)}`)
    renameSync(join(service.dir, 'large'), join(service.dir, 'several.yaml'))
    await says('several.yaml, document 1: the file is larger than')
    await holds('one', 'three', 'two')
    service.write('several.yaml', [entry('one'), entry('two')].join('---\n'))
    await holds('one', 'two')
    service.write('several.yaml', entry('one'))
    await holds('one')
    await until('no invalid documents', async () => /^pilot_config_documents_invalid 0$/m.test(await service.metrics()))
  })

  it('keep their objects while they are unreadable, and lose them when they are removed', async () => {
    service.write('linked.yaml', entry('linked'))
    await holds('linked', 'one')
    symlinkSync('linked.yaml', join(service.dir, 'link'))
    renameSync(join(service.dir, 'link'), join(service.dir, 'linked.yaml'))
    await says('linked.yaml, document 1: cannot be read: ELOOP')
    service.write('probe.yaml', entry('probe'))
    await holds('linked', 'one', 'probe')
    service.remove('linked.yaml')
    await holds('one', 'probe')
    service.remove('probe.yaml')
    await holds('one')
  })

  it('with unusual characters cause faults of their own only, at any length', async () => {
    const odd = [20_000, 60_000, 262_000].flatMap((length) => [`[${','.repeat(length)}`, '"'.repeat(length), '['.repeat(length)])
    for (const [index, text] of odd.entries()) service.write(`odd-${index}.yaml`, text)
    service.write('beside.yaml', entry('beside'))
    await until('the file beside them', async () => JSON.stringify(await names()) === '["beside","one"]')
    for (const index of odd.keys()) await says(`odd-${index}.yaml, document 1: ${index % 3 < 2 ? 'not YAML, line 1: Unexpected' : 'nested deeper'}`)
    const actors = await service.debug<{ restarts: number }[]>('actorsz')
    expect(actors.filter((actor) => actor.restarts > 0)).to.deep.equal([])
    for (const index of odd.keys()) service.remove(`odd-${index}.yaml`)
    service.remove('beside.yaml')
    await holds('one')
  })

  it('must be regular files: a pipe of the same name blocks nothing', async () => {
    execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', join(service.dir, 'pipe.yaml')])
    service.write('after.yaml', entry('after'))
    await holds('after', 'one')
    const actors = await service.debug<{ restarts: number }[]>('actorsz')
    expect(actors.filter((actor) => actor.restarts > 0)).to.deep.equal([])
  })
})
