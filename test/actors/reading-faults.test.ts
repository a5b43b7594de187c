import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ObjectDirectory } from '../../actors/discovery/sources/files/object-directory.ts'
import { FileTimeouts } from '../../actors/runtime/file-timeouts.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { SourceEvent } from '../../protocols/messages/push.ts'
import { isStandIn } from '../../src/config/stand-in.ts'
import { testSettings } from '../harness/settings.ts'
import { until } from '../harness/until.ts'

const policy = (name: string, spec = '{action: DENY, rules: [{}]}') =>
  `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n`
const never = { fallback: 'none', scopes: {} } as const

describe('unreadable content of a configuration directory', () => {
  let root: string
  let directory: ObjectDirectory
  let emitted: SourceEvent[]
  let logged: string[]
  const register = () => new MetricRegistry()
  let metrics: MetricRegistry
  const at = (...parts: string[]) => join(root, ...parts)
  const write = (name: string, text: string) => writeFileSync(at(name), text)
  /** Returns the policies in force, with `!` before stand-ins. */
  const counts = () =>
    [...directory.events()]
      .flatMap((event) => {
        const object = event.type === 'ConfigChanged' ? event.object : event.type === 'ConfigUnusable' ? event.standIn : undefined
        return object ? [`${isStandIn(object) ? '!' : ''}${object.namespace}/${object.name}`] : []
      })
      .sort()
  const gone = () => emitted.flatMap((event) => (event.type === 'ConfigChanged' && !event.object ? [event.key] : []))
  const troubles = () => directory.troubles().map(({ path, reason }) => `${path.slice(root.length + 1)}: ${reason}`)
  const start = async () => {
    emitted = []
    logged = []
    metrics = register()
    directory = new ObjectDirectory(root, testSettings(), metrics, {
      log: createLogger({ output: { fallback: 'debug', scopes: {} }, stackTrace: never, callers: [] }, ({ message }) => logged.push(message)),
      emit: (event) => void emitted.push(event),
      unwatchable: () => {},
      secret: () => {},
      filesRead: () => {},
    })
    await directory.start()
  }
  beforeEach(async () => {
    root = join(mkdtempSync(join(tmpdir(), 'mesh-faults-')), 'config')
    mkdirSync(at('sub'), { recursive: true })
    write('a.yaml', policy('a'))
    write('sub/b.yaml', policy('b'))
    await start()
    expect(counts()).to.deep.equal(['ns/a', 'ns/b'])
  })
  afterEach(async () => {
    await directory.close()
    rmSync(join(root, '..'), { recursive: true, force: true })
  })

  it('is logged with its consequence: no object is in force at the first start, the last ones are in force later', async () => {
    unlinkSync(at('a.yaml'))
    symlinkSync('nothing', at('a.yaml'))
    await until('the last state to stay', () => logged.some((line) => /^a\.yaml, document 1: .*; the objects of the file stay in force$/.test(line)))
    await directory.close()
    await start()
    expect(logged.filter((line) => line.startsWith('a.yaml,')).join()).to.match(/; no object of the file is in force$/)
    await directory.close()
    renameSync(root, `${root}-away`)
    await start()
    expect(logged.join()).to.match(/cannot read the configuration directory .*; no object of its files is in force/)
  })

  it('is listed with document, field and reason while it keeps a process from being ready', async () => {
    await directory.close()
    write('no-kind.yaml', 'apiVersion: networking.mesh.io/v1\nmetadata: {name: x, namespace: ns}\n')
    write('json.json', '["text"]')
    write('list.yaml', 'apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap}\n- text\n')
    await start()
    expect([...directory.unknown].sort()).to.deep.equal([
      'json.json, document 1, field [0]: expected a mapping with apiVersion, kind, metadata and spec',
      'list.yaml, document 1, field items[1]: expected a mapping with apiVersion, kind, metadata and spec',
      'no-kind.yaml, document 1, field kind: required, but missing',
    ])
  })

  const places: Record<string, () => undefined | (() => void)> = {
    'a directory': () => void mkdirSync(at('a.yaml')),
    'a pipe': () => void execFileSync('mkfifo', [at('a.yaml')]),
    'a link to a pipe': () => {
      execFileSync('mkfifo', [at('pipe')])
      symlinkSync('pipe', at('a.yaml'))
      return undefined
    },
    'a device without an end': () => void symlinkSync('/dev/zero', at('a.yaml')),
    'a socket': () => {
      const server = createServer().listen(at('a.yaml'))
      return () => void server.close()
    },
    'a link to nothing': () => void symlinkSync('nothing', at('a.yaml')),
    'a link to itself': () => void symlinkSync('a.yaml', at('a.yaml')),
    'a link to a directory': () => void symlinkSync('sub', at('a.yaml')),
    'a link to what gives errors': () => void symlinkSync('/proc/self/mem', at('a.yaml')),
  }
  for (const [what, put] of Object.entries(places))
    it(`keeps its last state: ${what} in the place of a file`, async () => {
      unlinkSync(at('a.yaml'))
      const undo = put()
      await until('the socket', () => what !== 'a socket' || execFileSync('ls', [root]).includes('a.yaml'))
      await directory.reload()
      await directory.reload()
      expect(counts()).to.deep.equal(['ns/a', 'ns/b'])
      expect(gone()).to.deep.equal([])
      expect(troubles().join()).to.match(/^a.yaml: cannot be read: /)
      expect(logged.filter((line) => line.includes('a.yaml, document 1: cannot be read'))).to.have.length(1)
      expect(directory.unknown, 'what keeps a process that starts from being ready').to.deep.equal([])
      // Corrected content is read again, and deleted objects are removed.
      undo?.()
      rmSync(at('a.yaml'), { recursive: true, force: true })
      write('a.yaml', policy('c'))
      await until('the new object', () => counts().join() === 'ns/b,ns/c')
      expect(troubles()).to.deep.equal([])
      rmSync(at('a.yaml'))
      await until('the deletion', () => counts().join() === 'ns/b')
    })

  it('keeps its last state: a file in the place of a directory, and of the whole directory', async () => {
    renameSync(at('sub'), at('away'))
    write('sub', '')
    await directory.reload()
    // The object is found at its new place, and kept for the directory that is gone.
    expect(counts()).to.deep.equal(['ns/a', 'ns/b'])
    renameSync(root, `${root}-away`)
    writeFileSync(root, '')
    await directory.reload()
    expect(counts()).to.deep.equal(['ns/a', 'ns/b'])
    expect(gone()).to.deep.equal([])
    expect(directory.troubles().map(({ path }) => path)).to.include(root)
    rmSync(root)
    renameSync(`${root}-away`, root)
    rmSync(at('sub'))
    rmSync(at('away'), { recursive: true })
    await until('all to be read again', () => counts().join() === 'ns/a' && directory.troubles().length === 0)
  })

  it('keeps its last state while a file system is not mounted', async function () {
    if (process.getuid?.() !== 0 || process.platform !== 'linux') this.skip()
    const mount = (...args: string[]) => execFileSync('mount', args)
    await directory.close()
    mount('-t', 'tmpfs', 'none', at('sub'))
    try {
      write('sub/d.yaml', policy('d'))
      await start()
      expect(counts()).to.deep.equal(['ns/a', 'ns/d'])
      rmSync(at('sub', 'nothing'), { force: true })
    } finally {
      execFileSync('umount', ['-l', at('sub')])
    }
    rmSync(at('sub', 'b.yaml'))
    await directory.reload()
    expect(counts()).to.deep.equal(['ns/a', 'ns/d'])
    expect(troubles().join()).to.include('sub: it is empty, and on another file system than before')
    write('sub/e.yaml', policy('e'))
    await until('what is there now', () => counts().join() === 'ns/a,ns/e')
  })

  it('is unknown if it was never readable, also after a restart', async () => {
    rmSync(at('a.yaml'))
    symlinkSync('a.yaml', at('a.yaml'))
    write('garbage.yaml', '"never closed')
    write('policy.yaml', policy('p').replace('DENY', '"DENY'))
    write('values.yaml', 'replicas: 3\n')
    execFileSync('mkfifo', [at('pipe.yaml')])
    await directory.close()
    await start()
    expect(counts()).to.deep.equal(['!ns/p', 'ns/b'])
    expect(directory.unknown.map((reason) => reason.replace(/(line|ELOOP).*/, '$1'))).to.deep.equal([
      'a.yaml, document 1: cannot be read: ELOOP',
      'garbage.yaml, document 1: not YAML, line',
    ])
    expect(directory.isComplete).to.equal(false)
    expect(logged).to.include(`${root}: pipes, sockets and devices are not read: pipe.yaml`)
    expect(logged).to.include('values.yaml: ignored, not configuration of this control plane: a document without apiVersion and kind (1)')
    expect(directory.standIns().map(({ key, place }) => `${key} ${place}`)).to.deep.equal(['AuthorizationPolicy/ns/p policy.yaml, document 1'])
    rmSync(at('a.yaml'))
    rmSync(at('garbage.yaml'))
    await until('all to be known', () => directory.unknown.length === 0)
  })

  it('has a last good state for each object, whatever file and position it moves to', async () => {
    write('a.yaml', [policy('x'), policy('a')].join('---\n'))
    await directory.reload()
    expect(counts()).to.deep.equal(['ns/a', 'ns/b', 'ns/x'])
    // Made invalid and moved, within the file and then to another file.
    write('a.yaml', [policy('a').replace('DENY', '"DENY'), policy('x')].join('---\n'))
    await directory.reload()
    expect(counts()).to.deep.equal(['ns/a', 'ns/b', 'ns/x'])
    write('a.yaml', policy('x').replace('DENY', '"DENY'))
    write('z.yaml', policy('a').replace('DENY', 'DENIED'))
    await directory.reload()
    expect(counts()).to.deep.equal(['ns/a', 'ns/b', 'ns/x'])
    // An object that is missing in a readable file is deleted.
    write('a.yaml', policy('z'))
    rmSync(at('z.yaml'))
    await directory.reload()
    expect(counts()).to.deep.equal(['ns/b', 'ns/z'])
  })

  const rule = (port: string) =>
    `apiVersion: networking.mesh.io/v1\nkind: DestinationRule\nmetadata: {name: r, namespace: ns}\nspec: {host: ${port}}\n`
  const consequences: readonly (readonly [what: string, before: string, text: string, consequence: string])[] = [
    ['an object that was never valid', '', rule('[]'), 'it is left out until it is valid'],
    ['an object that was valid', rule('a'), rule('[]'), 'its last good state stays'],
    ['a policy that was never valid', '', policy('x', '{action: DENIED}'), 'until it is valid, the workloads that it selects are guarded'],
    ['an object with a valid definition in the file', '', `${rule('[]')}---\n${rule('a')}`, 'the definition in f.yaml, document 2 counts'],
    ['a second definition of an object', '', `${rule('a')}---\n${rule('b')}`, 'the definition in f.yaml, document 1 counts'],
    ['a second definition of a policy', '', `${policy('x')}---\n${policy('x', '{}')}`, 'until the definitions agree, the workloads'],
    ['a document without an object', '', 'a: [', 'the document is left out'],
    ['a document that may define objects of before', rule('a'), 'a: [', 'objects that the file defined before and does not define now stay'],
    [
      'a Secret that was never valid',
      '',
      'apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: s, namespace: ns}\ndata: {tls.crt: x}\n',
      'it is left out until it is valid',
    ],
  ]
  for (const [what, before, text, consequence] of consequences)
    it(`is reported with its consequence: ${what}`, async () => {
      if (before !== '') write('f.yaml', before)
      await directory.reload()
      write('f.yaml', text)
      await directory.reload()
      const lines = logged.filter((line) => line.startsWith('f.yaml, document'))
      expect(lines).to.not.deep.equal([])
      for (const line of lines) expect(line).to.include(`; ${consequence}`)
    })

  it('is replaced in one step with the objects that take its place', async () => {
    emitted = []
    write('a.yaml', policy('other'))
    await until('the change', () => emitted.length === 2)
    const events = emitted.map((event) => (event.type === 'ConfigChanged' ? `${event.key} ${event.object ? 'is there' : 'is gone'}` : event.type))
    expect(events.sort()).to.deep.equal(['AuthorizationPolicy/ns/a is gone', 'AuthorizationPolicy/ns/other is there'])
    expect(new Set(emitted.map(({ at }) => at))).to.have.property('size', 1)
    // In another file, which was not read yet.
    rmSync(at('a.yaml'))
    write('z.yaml', policy('other').replace('DENY', '"DENY'))
    await until('the fault', () => logged.some((line) => line.startsWith('z.yaml, document 1')))
    expect(counts()).to.deep.equal(['ns/b', 'ns/other'])
  })

  it('counts as one definition if it is linked under two names', async () => {
    symlinkSync('a.yaml', at('link.yaml'))
    await directory.reload()
    expect(counts()).to.deep.equal(['ns/a', 'ns/b'])
    for (const action of ['AUDIT', 'DENY', 'AUDIT']) {
      write('a.yaml', policy('a', `{action: ${action}, rules: [{}]}`))
      await until('the change', () =>
        [...directory.events()].some((event) => JSON.stringify(event).includes(`"${action}"`) && JSON.stringify(event).includes('/a"')),
      )
    }
    // Mappings are equal in any order of their keys.
    rmSync(at('link.yaml'))
    write('link.yaml', policy('a', '{rules: [{}], action: AUDIT}'))
    await directory.reload()
    expect(counts()).to.deep.equal(['ns/a', 'ns/b'])
    expect(emitted.some((event) => JSON.stringify(event).includes('isContested'))).to.equal(false)
  })

  it('defined in several files applies as in the first by path, or for differing policies as the strictest', async () => {
    const allow = policy('b', '{rules: [{}]}')
    write('a2.yaml', policy('b'))
    await directory.reload()
    expect(counts()).to.deep.equal(['ns/a', 'ns/b'])
    write('a2.yaml', allow)
    await until('the contest', () => counts().join() === '!ns/b,ns/a' || counts().join() === 'ns/a,!ns/b')
    // Also if a valid version was known before.
    expect(emitted.at(-1)).to.have.property('type', 'ConfigChanged')
    expect(logged.filter((line) => line.includes('a2.yaml already defines it differently'))).to.have.length(1)
    rmSync(at('sub', 'b.yaml'))
    await until('the one that is left', () => counts().join() === 'ns/a,ns/b')
    write('a3.yaml', allow.replace('rules', '"rules'))
    await until('the contest with one that cannot be read', () => counts().includes('!ns/b'))
    rmSync(at('a2.yaml'))
    await until('the last good state', () => counts().join() === 'ns/a,ns/b')
  })
})

describe('file system timeouts', () => {
  it('abandon calls that do not answer, and make no further calls while too many are pending', async () => {
    const timeouts = new FileTimeouts(20)
    const answers: (() => void)[] = []
    const hang = () => new Promise<string>((resolve) => answers.push(() => resolve('late')))
    const reasonOf = (asked: Promise<unknown>) => asked.then(String, (error: Error) => error.message)
    expect(await timeouts.run(async () => 'quick')).to.equal('quick')
    expect(await reasonOf(timeouts.run(() => Promise.reject(new Error('own'))))).to.equal('own')
    expect(await Promise.all([hang, hang].map((each) => reasonOf(timeouts.run(each))))).to.deep.equal([
      'no answer within 20 ms',
      'no answer within 20 ms',
    ])
    expect(await reasonOf(timeouts.run(async () => 'quick'))).to.equal(
      'not attempted: 2 earlier file operations that timed out have not returned yet',
    )
    answers[0]?.()
    await until('room', async () => (await reasonOf(timeouts.run(async () => 'quick'))) === 'quick')
  })
})
