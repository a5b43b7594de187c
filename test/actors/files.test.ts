import { chmodSync, chownSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { readFile, signatureOf, signaturesOf } from '../../actors/discovery/sources/files/file-content.ts'
import { ObjectDirectory } from '../../actors/discovery/sources/files/object-directory.ts'
import { SettingsFiles, type WatchParts } from '../../actors/discovery/sources/files/settings-files.ts'
import { gatewayResolver } from '../../actors/discovery/sources/resolve-gateways.ts'
import { FileTimeouts } from '../../actors/runtime/file-timeouts.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { SourceEvent } from '../../protocols/messages/push.ts'
import type { MeshNetworks } from '../../src/config/mesh-config.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { testSettings } from '../harness/settings.ts'
import { until } from '../harness/until.ts'

const entry = (name: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ns}\nspec: {hosts: [${name}.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.1.1.1}]}\n`
const log = {
  output: { fallback: 'debug', scopes: {} },
  stackTrace: { fallback: 'none', scopes: {} },
  callers: [],
  asJson: false,
  targets: [],
  rotate: undefined,
} as const

const isRoot = process.getuid?.() === 0
/** User id of an unprivileged user. */
const ordinary = 65_534

describe('watched files', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-files-'))
  const path = (...parts: string[]) => join(dir, ...parts)
  let emitted: SourceEvent[] = []
  /** Called with each event when it is emitted. */
  let onEmitted: (event: SourceEvent) => void = () => {}
  let logged: string[] = []
  const parts: WatchParts = {
    log: createLogger(log, ({ message }) => logged.push(message)),
    emit: (event) => {
      emitted.push(event)
      onEmitted(event)
    },
    unwatchable: () => {},
  }
  const started: { close(): void | Promise<void> }[] = []
  beforeEach(() => {
    emitted = []
    onEmitted = () => {}
    logged = []
  })
  afterEach(async () => {
    if (isRoot) process.seteuid?.(0)
    for (const one of started.splice(0)) await one.close()
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  describe('of objects', () => {
    it('are not sent once the directory is closed, whatever is being read', async () => {
      const root = path('closed')
      mkdirSync(root)
      writeFileSync(join(root, 'a.yaml'), entry('a'))
      const directory = new ObjectDirectory(root, testSettings(), new MetricRegistry(), {
        ...parts,
        secret: () => undefined,
        filesRead: () => undefined,
      })
      const start = directory.start()
      await directory.close()
      await start
      expect(emitted).to.deep.equal([])
      writeFileSync(join(root, 'b.yaml'), entry('b'))
      directory.audit()
      await directory.reload()
      expect(emitted).to.deep.equal([])
    })

    const objects = async () => {
      const root = path('objects')
      mkdirSync(root)
      writeFileSync(join(root, 'a.yaml'), entry('a'))
      const directory = new ObjectDirectory(root, testSettings(), new MetricRegistry(), {
        ...parts,
        secret: () => undefined,
        filesRead: () => undefined,
      })
      started.push(directory)
      await directory.start()
      return { root, directory, keys: () => [...directory.events()].map((event) => ('key' in event ? event.key : '')).sort() }
    }

    it('keep their objects while the whole directory is missing, and lose them when it is back without them', async () => {
      const { root, directory, keys } = await objects()
      writeFileSync(join(root, 'b.yaml'), entry('b'))
      await directory.reload()
      expect(keys()).to.deep.equal(['ServiceEntry/ns/a', 'ServiceEntry/ns/b'])
      renameSync(root, path('elsewhere'))
      for (let round = 0; round < 3; round++) await directory.reload()
      expect(keys()).to.deep.equal(['ServiceEntry/ns/a', 'ServiceEntry/ns/b'])
      expect(logged.filter((line) => line.includes('cannot read the configuration directory'))).to.have.length(1)
      mkdirSync(root)
      writeFileSync(join(root, 'b.yaml'), entry('b'))
      await directory.reload()
      expect(keys()).to.deep.equal(['ServiceEntry/ns/b'])
      rmSync(root, { recursive: true })
    })

    it('keep their objects while their directory is unreadable, and other files are read', async () => {
      // Root can read everything, so the test acts as an unprivileged user.
      if (isRoot) {
        chownSync(dir, ordinary, ordinary)
        process.seteuid?.(ordinary)
      }
      const { root, directory, keys } = await objects()
      mkdirSync(join(root, 'closed'))
      writeFileSync(join(root, 'closed', 'b.yaml'), entry('b'))
      await directory.reload()
      chmodSync(join(root, 'closed'), 0)
      writeFileSync(join(root, 'c.yaml'), entry('c'))
      for (let round = 0; round < 2; round++) await directory.reload()
      expect(keys()).to.deep.equal(['a', 'b', 'c'].map((name) => `ServiceEntry/ns/${name}`))
      expect(logged.filter((line) => line.includes('EACCES'))).to.have.length(2)
      chmodSync(join(root, 'closed'), 0o700)
      rmSync(join(root, 'closed'), { recursive: true })
      await directory.reload()
      expect(keys()).to.deep.equal(['a', 'c'].map((name) => `ServiceEntry/ns/${name}`))
      rmSync(root, { recursive: true })
    })

    it('are retried after they could not be read, even if the file itself does not change', async () => {
      const { root, directory, keys } = await objects()
      rmSync(join(root, 'a.yaml'))
      symlinkSync('a.yaml', join(root, 'a.yaml'))
      await directory.reload()
      expect(keys()).to.deep.equal(['ServiceEntry/ns/a'])
      // The target of the link is created, of which the directory is not notified.
      rmSync(join(root, 'a.yaml'))
      symlinkSync(path('far', 'a.yaml'), join(root, 'a.yaml'))
      symlinkSync(path('far'), path('far'))
      await directory.reload()
      expect(keys()).to.deep.equal(['ServiceEntry/ns/a'])
      rmSync(path('far'))
      mkdirSync(path('far'))
      writeFileSync(path('far', 'a.yaml'), entry('c'))
      directory.audit()
      await until('the new object', () => keys().join() === 'ServiceEntry/ns/c')
      rmSync(root, { recursive: true })
    })

    /** A document whose regular expressions take seconds to compile. */
    const costly = (name: string) =>
      `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: ${name}, namespace: ns}\nspec:\n  hosts: [a.com]\n  http:\n${Array.from(
        { length: 1500 },
        (_, index) => `  - {match: [{uri: {regex: '[^a]{0,110}${index}'}}], route: [{destination: {host: a.com}}]}\n`,
      ).join('')}`
    const large = (name: string) => `${'# a comment\n'.repeat(25_000)}${entry(name)}`
    for (const [what, slow, key] of [
      ['whose regular expressions cost much', costly('slow'), 'VirtualService/ns/slow'],
      ['that are large', large('slow'), 'ServiceEntry/ns/slow'],
    ] as const)
      it(`${what} do not delay others, and the newest content applies`, async () => {
        const { root, keys } = await objects()
        const order = () => emitted.flatMap((event) => ('key' in event ? event.key : []))
        writeFileSync(join(root, '1.yaml'), slow)
        writeFileSync(join(root, '2.yaml'), entry('quick'))
        await until('both files', () => order().includes(key) && order().includes('ServiceEntry/ns/quick'))
        expect(order().indexOf('ServiceEntry/ns/quick')).to.be.lessThan(order().indexOf(key))
        emitted = []
        writeFileSync(join(root, '1.yaml'), slow.replaceAll('slow', 'slower'))
        writeFileSync(join(root, '3.yaml'), entry('third'))
        // When the third is emitted, the first is still being read.
        onEmitted = (event) => {
          if (!('key' in event) || event.key !== 'ServiceEntry/ns/third') return
          writeFileSync(join(root, '1.yaml'), slow)
          writeFileSync(join(root, '4.yaml'), large('last'))
        }
        await until('the last file', () => order().includes('ServiceEntry/ns/last'))
        expect(order().filter((key) => key.includes('slow'))).to.deep.equal([])
        expect(keys()).to.deep.equal(['ServiceEntry/ns/a', 'ServiceEntry/ns/last', 'ServiceEntry/ns/quick', 'ServiceEntry/ns/third', key].sort())
        rmSync(root, { recursive: true })
      })
  })

  it('have no signature after they could not be read, so that the next audit reads them', async () => {
    // It exists, has no size, and cannot be read at its beginning.
    symlinkSync('/proc/self/mem', path('unreadable'))
    const timeouts = new FileTimeouts()
    const { content, signature } = await readFile(path('unreadable'), timeouts)
    expect(content)
      .to.have.property('fault')
      .that.matches(/^cannot be read: EIO/)
    expect(signature).to.equal('')
    expect(await signatureOf(path('unreadable'), timeouts)).not.to.equal('')
  })

  it('have the same signature when they are read and when they are only looked at', async () => {
    const timeouts = new FileTimeouts()
    writeFileSync(path('signed'), 'a: 1')
    const { content, signature } = await readFile(path('signed'), timeouts)
    expect(content).to.deep.equal({ text: 'a: 1' })
    expect(signature)
      .to.be.a('string')
      .that.equals(await signatureOf(path('signed'), timeouts))
    writeFileSync(path('signed'), 'a: 12')
    expect(signature).not.to.equal(await signatureOf(path('signed'), timeouts))
    expect(await readFile(path('none'), timeouts)).to.deep.equal({ content: undefined, signature: undefined })
    expect(await signatureOf(path('none'), timeouts)).to.equal(undefined)
  })

  it('have the same signatures together as alone, of whatever kind they are, for few operations of the thread pool', async () => {
    const root = mkdtempSync(path('kinds-'))
    const files = Array.from({ length: 300 }, (_, index) => join(root, `${index}.yaml`))
    for (const file of files) writeFileSync(file, 'a: 1')
    mkdirSync(join(root, 'directory.yaml'))
    symlinkSync(files[0] as string, join(root, 'link.yaml'))
    symlinkSync(join(root, 'nothing'), join(root, 'dangling.yaml'))
    symlinkSync('circle.yaml', join(root, 'circle.yaml'))
    const others = ['directory.yaml', 'link.yaml', 'dangling.yaml', 'circle.yaml', 'missing.yaml', '0.yaml/below.yaml', 'missing/a.yaml']
    const all = [...files, ...others.map((name) => join(root, name))]
    class Counted extends FileTimeouts {
      operations = 0
      override run<T>(ask: () => Promise<T>): Promise<T> {
        this.operations++
        return super.run(ask)
      }
    }
    const timeouts = new Counted()
    const found: [string, string | undefined][] = []
    for await (const each of signaturesOf(all, timeouts)) found.push(each)
    expect(timeouts.operations).to.be.below(20)
    expect(found).to.deep.equal(await Promise.all(all.map(async (file) => [file, await signatureOf(file, timeouts)])))
    expect(found.map(([, signature]) => signature)).to.include.members([undefined, ''])
  })

  it('are looked at by the thread pool alone while their directory does not answer', async () => {
    const root = mkdtempSync(path('silent-'))
    const files = ['a.yaml', 'b.yaml', 'c.yaml'].map((name) => join(root, name))
    for (const file of files) writeFileSync(file, 'a: 1')
    class Silent extends FileTimeouts {
      override run<T>(): Promise<T> {
        return Promise.reject(new Error('no answer'))
      }
    }
    for await (const [, signature] of signaturesOf(files, new Silent())) expect(signature).to.equal('')
  })

  describe('of a restarted watcher', () => {
    it('keep the mesh configuration in force if it is no longer readable', async () => {
      const discovery = new LocalDiscovery({ mode: 'in-thread' }, { PILOT_MOCK_SERVICES: '0' })
      try {
        writeFileSync(path('mesh-config'), 'rootNamespace: given')
        await discovery.start({ meshConfig: path('mesh-config'), trustDomain: 'flag.example' })
        await discovery.service.ready()
        const mesh = () => discovery.debug<{ rootNamespace: string; trustDomain: string }>('mesh')
        const inForce = { rootNamespace: 'given', trustDomain: 'flag.example' }
        expect(await mesh()).to.deep.include(inForce)
        writeFileSync(path('mesh-config'), 'rootNamespace: [')
        discovery.service.supervisor.kill('source/files')
        // Objects are sent after the settings: once they arrived, the settings were sent or skipped.
        discovery.write('after.yaml', entry('after'))
        await until('the watcher to emit everything', async () => {
          const objects = await discovery.debug<{ metadata: { name: string } }[]>('configz')
          return discovery.state('source/files').restarts === 1 && objects.some(({ metadata }) => metadata.name === 'after')
        })
        expect(await mesh()).to.deep.include(inForce)
        discovery.service.supervisor.kill('push-queue')
        // The former content of the file is not known any more: writers serve the last state until the file is corrected.
        const waits = async () => (await (await fetch(`http://127.0.0.1:${discovery.httpPort}/ready`)).text()).split('\n')
        const reason = `mesh configuration ${path('mesh-config')}: not YAML, line 1: `
        await until('a new push queue that waits', async () => {
          const lines = await waits()
          return discovery.state('push-queue').restarts === 1 && lines.some((line) => line.startsWith(reason))
        })
        expect(await waits()).to.include('source/files has not delivered its complete state yet')
        writeFileSync(path('mesh-config'), 'rootNamespace: mended')
        await until('the mended configuration', async () => (await mesh()).rootNamespace === 'mended')
        expect(await mesh()).to.deep.include({ trustDomain: 'flag.example' })
        expect((await waits()).filter((line) => line.includes('complete state') || line.includes('configuration'))).to.deep.equal([])
      } finally {
        await discovery.dispose()
      }
    })
  })

  it('without a directory are watched on the main thread, also after a restart', async () => {
    const discovery = new LocalDiscovery({ mode: 'threads' }, { PILOT_MOCK_SERVICES: '0' })
    try {
      writeFileSync(path('mesh-config'), 'rootNamespace: given')
      await discovery.start({ configDir: '', meshConfig: path('mesh-config') })
      await discovery.service.ready()
      const root = async () => (await discovery.debug<{ rootNamespace: string }>('mesh')).rootNamespace
      const cpu = async (actor: string) => (await discovery.service.supervisor.ask<{ cpuSeconds: number }>(actor, 'stats')).cpuSeconds
      expect(await cpu('source/files'), 'CPU of a thread of its own').to.equal(0)
      expect(await cpu('push-queue')).to.be.greaterThan(0)
      expect(await root()).to.equal('given')
      discovery.service.supervisor.kill('source/files')
      writeFileSync(path('mesh-config'), 'rootNamespace: changed')
      await until('the changed settings', async () => (await root()) === 'changed' && discovery.state('source/files').restarts === 1)
    } finally {
      await discovery.dispose()
    }
  })

  describe('of settings', () => {
    const settings = async (
      files: { meshConfig?: string; networksConfig?: string },
      resolve?: ConstructorParameters<typeof SettingsFiles>[2],
      wait = true,
    ) => {
      const config = {
        features: {},
        allowUnreadable: false,
        source: 'files',
        configDir: '',
        meshConfig: '',
        networksConfig: '',
        trustDomain: '',
        ...files,
      }
      const found = new SettingsFiles(config, parts, resolve)
      started.push(found)
      const start = found.start()
      if (wait) await start
      return found
    }
    const types = () => emitted.map(({ type }) => type).sort()

    it('are not sent once the watch is closed, whatever is being read or looked up', async () => {
      const lookup = Promise.withResolvers<void>()
      let asked = 0
      writeFileSync(path('closing-mesh'), 'rootNamespace: a')
      writeFileSync(path('closing-networks'), 'networks: {net: {gateways: [{address: gateway.test}]}}')
      const files = await settings(
        { meshConfig: path('closing-mesh'), networksConfig: path('closing-networks') },
        async (given) => {
          asked++
          await lookup.promise
          return { networks: given, missing: [] }
        },
        false,
      )
      await until('the gateway to be looked up', () => asked === 1)
      expect(types()).to.deep.equal(['MeshChanged'])
      writeFileSync(path('closing-mesh'), 'rootNamespace: b')
      const read = files.reload()
      files.close()
      lookup.resolve()
      await read
      files.audit()
      await files.reload()
      expect(types()).to.deep.equal(['MeshChanged'])
    })

    it('are read for both settings if both name the same file', async () => {
      writeFileSync(path('both'), '')
      await settings({ meshConfig: path('both'), networksConfig: path('both') })
      expect(types()).to.deep.equal(['MeshChanged', 'NetworksChanged'])
    })

    it('are skipped while they cannot be read: the last settings stay', async () => {
      writeFileSync(path('mesh'), 'rootNamespace: [')
      symlinkSync('networks', path('networks'))
      const files = await settings({ meshConfig: path('mesh'), networksConfig: path('networks') })
      // They are mentioned, so that a replay withdraws nothing of what an earlier incarnation gave.
      expect(files.events().map((event) => event.type === 'SettingUnusable' && event.setting)).to.deep.equal(['mesh', 'networks'])
      expect(logged.filter((line) => line.includes('the settings in force stay'))).to.have.length(2)
      rmSync(path('networks'))
      writeFileSync(path('networks'), 'networks: {net: {gateways: [{address: 1.2.3.4}]}}')
      writeFileSync(path('mesh'), 'rootNamespace: given')
      files.audit()
      await until('both to be emitted', () => types().includes('MeshChanged') && types().includes('NetworksChanged'))
    })

    it('keep the addresses of a gateway whose name no longer resolves', async () => {
      const hosts = new Map([['a.example', ['10.0.0.1']]])
      const resolve = gatewayResolver(async (host) => hosts.get(host) ?? Promise.reject(new Error('ENOTFOUND')))
      const networks = { networks: { n: { gateways: [{ address: 'a.example' }, { address: 'b.example' }] } } }
      const gateways = async () => {
        const resolved = await resolve(networks)
        return [resolved.networks.networks?.n?.gateways?.map(({ address }) => address), resolved.missing.sort()]
      }
      const missing = (host: string, consequence: string) => `${host}: ENOTFOUND; ${consequence}`
      expect(await gateways()).to.deep.equal([['10.0.0.1', 'b.example'], [missing('b.example', 'it is left out until it can be resolved')]])
      hosts.delete('a.example')
      hosts.set('b.example', ['10.0.0.2', '10.0.0.3'])
      for (let round = 0; round < 2; round++)
        expect(await gateways()).to.deep.equal([['10.0.0.1', '10.0.0.2', '10.0.0.3'], [missing('a.example', 'its last addresses stay')]])
    })

    it('keep the addresses of the newest networks, although a lookup for the networks before ends later', async () => {
      const slow = Promise.withResolvers<string[]>()
      const hosts = new Map<string, Promise<string[]>>([
        ['slow.example', slow.promise],
        ['b.example', Promise.resolve(['10.0.0.2'])],
      ])
      const resolve = gatewayResolver((host) => hosts.get(host) ?? Promise.reject(new Error('ENOTFOUND')))
      const networks = (address: string) => ({ networks: { n: { gateways: [{ address }] } } })
      const before = resolve(networks('slow.example'))
      await resolve(networks('b.example'))
      slow.resolve(['10.0.0.1'])
      await before
      hosts.clear()
      expect((await resolve(networks('b.example'))).networks).to.deep.equal(networks('10.0.0.2'))
    })

    it('do not wait for host names of gateways, and the newest file applies whichever answer comes first', async () => {
      const answers = new Map<string, () => void>()
      const resolve = (given: MeshNetworks) =>
        new Promise<{ networks: MeshNetworks; missing: string[] }>((resolve) =>
          answers.set(Object.keys(given.networks ?? {}).join(), () => resolve({ networks: given, missing: [] })),
        )
      const networks = (name: string) => writeFileSync(path('names'), `networks: {${name}: {gateways: [{address: slow.example}]}}`)
      writeFileSync(path('beside'), '')
      networks('first')
      const files = await settings({ meshConfig: path('beside'), networksConfig: path('names') }, resolve, false)
      await until('the first question', () => answers.has('first'))
      writeFileSync(path('beside'), 'rootNamespace: other')
      networks('second')
      await files.reload()
      expect(types()).to.deep.equal(['MeshChanged', 'MeshChanged'])
      await until('the second question', () => answers.has('second'))
      answers.get('second')?.()
      answers.get('first')?.()
      await until('the networks', () => types().includes('NetworksChanged'))
      expect(files.events().find(({ type }) => type === 'NetworksChanged')).to.deep.include({
        networks: { networks: { second: { gateways: [{ address: 'slow.example' }] } } },
      })
      expect(types().filter((type) => type === 'NetworksChanged')).to.have.length(1)
    })
  })
})
