/** The state of the certificate authority in a directory: permissions, locks of living and dead processes, and a crash at any moment. */
import { type ChildProcess, execFileSync, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { openFileStorage } from '../../actors/discovery/authority/file-storage.ts'
import { readKey, storeKey } from '../../actors/discovery/authority/key-storage.ts'
import { StaleVersionError } from '../../actors/discovery/authority/storage.ts'
import { type AuthorityState, emptyState } from '../../src/ca/state.ts'
import { rootOf } from '../harness/authorities.ts'

const child = fileURLToPath(new URL('./parts/storage-child.ts', import.meta.url))
const withRoot = (name: string): AuthorityState => ({ ...emptyState, authorities: [rootOf(name).record] })
const failure = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'nothing failed',
    (error: Error) => error.message,
  )
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe('the state of the certificate authority', () => {
  let base: string
  let directory: string
  const children: ChildProcess[] = []
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'mesh-ca-'))
    directory = join(base, 'ca')
  })
  afterEach(() => {
    for (const process of children.splice(0)) process.kill('SIGKILL')
    rmSync(base, { recursive: true, force: true })
  })

  const holder = async (at = directory): Promise<ChildProcess> => {
    const process = fork(child, [at, 'hold'])
    children.push(process)
    await once(process, 'message')
    return process
  }

  it('is empty at first, and then what was last written', async () => {
    const storage = await openFileStorage(directory)
    const { state, version } = await storage.read()
    expect(state).to.deep.equal(emptyState)
    const next = await storage.write(withRoot('one'), version)
    expect(await storage.read()).to.deep.equal({ state: withRoot('one'), version: next })
    await storage.writeNote('ledger', 'text')
    await storage.close()
    const again = await openFileStorage(directory)
    expect((await again.read()).state).to.deep.equal(withRoot('one'))
    expect(await again.readNote('ledger')).to.equal('text')
    expect(await again.readNote('other')).to.equal(undefined)
    await again.close()
  })

  it('is accessible for its user only, with any umask', async () => {
    const before = process.umask(0)
    try {
      const storage = await openFileStorage(directory)
      storeKey(storage.keys, rootOf('one').record.id, rootOf('one').key)
      await storage.writeNote('ledger', 'text')
      const keys = storage.keys.directory
      expect([directory, keys].map(mode)).to.deep.equal(['700', '700'])
      const files = [...readdirSync(directory), ...readdirSync(keys).map((name) => join('keys', name))].filter((name) => name !== 'keys')
      expect(files.map((name) => mode(join(directory, name)))).to.deep.equal(files.map(() => '600'))
      await storage.close()
    } finally {
      process.umask(before)
    }
  })

  it('is refused in a directory or key file that others can access', async () => {
    mkdirSync(directory, { mode: 0o755 })
    const storage = await openFileStorage(directory)
    expect(mode(directory), 'an empty one is narrowed').to.equal('700')
    const { record, key } = rootOf('one')
    storeKey(storage.keys, record.id, key)
    await storage.close()
    chmodSync(directory, 0o750)
    expect(await failure(openFileStorage(directory))).to.equal(`${directory}: others can use it (mode 0750): chmod 700 it, or name another directory`)
    const path = join(storage.keys.directory, `${record.id}.pem`)
    expect(readKey(storage.keys, record.id).equals(key)).to.equal(true)
    chmodSync(path, 0o640)
    expect(() => readKey(storage.keys, record.id)).to.throw(`${path}: others can use it (mode 0640): chmod 600 it`)
    chmodSync(directory, 0o700)
    expect(await failure(openFileStorage(directory)), 'at start').to.contain(`${path}: others can use it (mode 0640): chmod 600 it`)
    renameSync(path, `${path}.moved`)
    symlinkSync(`${path}.moved`, path)
    expect(() => readKey(storage.keys, record.id)).to.throw('ELOOP')
    rmSync(path)
    writeFileSync(path, 'secret words', { mode: 0o600 })
    expect(() => readKey(storage.keys, record.id)).to.throw(/^\S+: holds no private key in PEM, or one that is encrypted$/)
  })

  it('accepts only certificate ids as key names, and never replaces a key', async () => {
    const storage = await openFileStorage(directory)
    expect(() => readKey(storage.keys, '../state')).to.throw('is not the id of a certificate')
    const { record, key } = rootOf('one')
    storeKey(storage.keys, record.id, key)
    expect(() => storeKey(storage.keys, record.id, rootOf('two').key)).to.throw('EEXIST')
    expect(readKey(storage.keys, record.id).equals(key)).to.equal(true)
    await storage.keepKeys([])
    expect(readdirSync(storage.keys.directory)).to.deep.equal([])
    await storage.close()
  })

  it("that is damaged is rejected with the file's name and left unchanged", async () => {
    const storage = await openFileStorage(directory)
    const version = await storage.write(withRoot('one'), (await storage.read()).version)
    const path = join(directory, 'state.json')
    const good = readFileSync(path, 'utf8')
    const other = rootOf('two').record.id
    const damages: Record<string, string> = {
      'Unexpected end of JSON input': '',
      'format 2 is not 1': good.replace('"format": 1', '"format": 2'),
      'authorities[0].id: is not the fingerprint of the certificate': good.replace(rootOf('one').record.id, other),
      'stage: is none of stable, announce, trust-both, sign-with-new, retire': good.replace('"stable"', '"done"'),
      'authorities: in stage announce there are 2 of them, not 1': good.replace('"stable"', '"announce"'),
      'authorities[0].certificate: is not a certificate in PEM': good.replace('BEGIN CERTIFICATE', 'BEGUN CERTIFICATE'),
      'since: is not a number from 0 on': good.replace('"since": 0', '"since": "now"'),
      'the state: is not an object': '{"format":1,"version":3}',
    }
    for (const [reason, text] of Object.entries(damages)) {
      writeFileSync(path, text)
      const said = await failure(storage.write(withRoot('two'), version))
      expect(said).to.include(`${path}: is damaged and stays as it is: `)
      expect(said).to.include(reason)
      expect(readFileSync(path, 'utf8')).to.equal(text)
    }
    await storage.close()
    expect(await failure(openFileStorage(directory))).to.include('is damaged and stays as it is')
    rmSync(path)
    storeKey(storage.keys, rootOf('one').record.id, rootOf('one').key)
    expect(await failure(openFileStorage(directory))).to.include('state.json: is missing, but')
    expect(existsSync(path)).to.equal(false)
  })

  it('detects a concurrent write', async () => {
    const storage = await openFileStorage(directory)
    const { version } = await storage.read()
    const next = await storage.write(withRoot('one'), version)
    const refused = await storage.write(withRoot('two'), version).catch((error: Error) => error)
    expect(refused).to.be.instanceOf(StaleVersionError)
    expect((await storage.read()).state).to.deep.equal(withRoot('one'))
    await storage.write(withRoot('two'), next)
    for (const name of readdirSync(directory).filter((entry) => entry.startsWith('lock.'))) rmSync(join(directory, name))
    expect(await failure(storage.write(withRoot('one'), '3'))).to.include('cannot be seen any more')
    await storage.close()
  })

  it('is locked by one process, which the error names, until that process ends', async () => {
    const first = await holder()
    expect(await failure(openFileStorage(directory))).to.match(
      new RegExp(
        `^${directory}: is in use by process ${first.pid} on \\S+ \\(.*storage-child.ts.*\\); stop it, or name another directory in MESHD_CA_STATE_DIR$`,
      ),
    )
    first.send('close')
    await once(first, 'exit')
    const second = await holder()
    second.kill('SIGKILL')
    await once(second, 'exit')
    await (await openFileStorage(directory)).close()
    expect(readdirSync(directory).filter((name) => name.startsWith('lock.'))).to.deep.equal([])
  })

  it('stays locked by a process of which cannot be told whether it lives', async function () {
    const first = await holder()
    const [stat, unreadable] = [`/proc/${first.pid}/stat`, join(directory, 'unreadable')]
    writeFileSync(unreadable, '')
    for (const [cover, reason] of [
      [`/proc/${process.pid}/mem`, 'EIO'],
      [unreadable, 'does not say when the process began'],
    ] as const) {
      // Covering a file of /proc requires the permission to mount.
      if (spawnSync('mount', ['--bind', cover, stat]).status !== 0) return this.skip()
      try {
        expect(await failure(openFileStorage(directory)))
          .to.include(`${stat}: `)
          .and.include(reason)
      } finally {
        execFileSync('umount', [stat])
      }
    }
    expect(await failure(openFileStorage(directory))).to.include(`is in use by process ${first.pid}`)
    rmSync(unreadable)
    first.send('close')
    await once(first, 'exit')
  })

  it('can be opened again by the same process, which takes over the lock', async () => {
    const first = await openFileStorage(directory)
    const { version } = await first.read()
    const second = await openFileStorage(directory)
    expect(await failure(first.write(withRoot('one'), version))).to.include('cannot be seen any more')
    await first.close()
    await second.write(withRoot('two'), version)
    await second.close()
  })

  it('is taken over from a reused process id, and from a remote process without a sign of life', async () => {
    const storage = await openFileStorage(directory)
    const [lock = ''] = readdirSync(directory).filter((name) => name.startsWith('lock.'))
    const said = JSON.parse(readFileSync(join(directory, lock), 'utf8'))
    await storage.close()
    const path = join(directory, 'lock.other')
    writeFileSync(path, JSON.stringify({ ...said, started: '1' }))
    await (await openFileStorage(directory)).close()
    expect(existsSync(path), 'the number of this process, but another start').to.equal(false)
    writeFileSync(path, JSON.stringify({ ...said, boot: 'another', host: 'elsewhere' }))
    expect(await failure(openFileStorage(directory))).to.include('is in use by process')
    utimesSync(path, new Date(Date.now() - 21_000), new Date(Date.now() - 21_000))
    await (await openFileStorage(directory)).close()
    expect(existsSync(path), 'no sign for twenty seconds').to.equal(false)
  })

  it('opens on a full disk, where the name of an empty lock file names its process, until that process ends', async function () {
    const disk = join(directory, 'disk')
    mkdirSync(disk, { recursive: true })
    // A small disk requires the permission to mount one.
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=700', 'none', disk]).status !== 0) return this.skip()
    try {
      await (await openFileStorage(disk)).close()
      expect(() => writeFileSync(join(disk, 'filler'), 'x'.repeat(100_000))).to.throw('ENOSPC')
      const first = await holder(disk)
      const [lock = ''] = readdirSync(disk).filter((name) => name.startsWith('lock.'))
      expect([lock.length < 256, statSync(join(disk, lock)).size]).to.deep.equal([true, 0])
      expect(await failure(openFileStorage(disk))).to.match(
        new RegExp(`^${disk}: is in use by process ${first.pid} on \\S+; stop it, or name another`),
      )
      first.kill('SIGKILL')
      await once(first, 'exit')
      const again = await openFileStorage(disk)
      expect((await again.read()).version).to.equal('1')
      const refused = await again.write(withRoot('one'), '1').catch((error: Error) => error)
      expect((refused as Error).message).to.include(`ENOSPC: no space left on device, write '${disk}/state.json`)
      rmSync(join(disk, 'filler'))
      await again.write(withRoot('one'), '1')
      await again.close()
      expect(readdirSync(disk).sort()).to.deep.equal(['keys', 'state.json'])
    } finally {
      for (const process of children) process.kill('SIGKILL')
      execFileSync('umount', ['--lazy', disk])
    }
  })

  it('is given to exactly one of many processes that open it at once', async () => {
    const asking = Array.from({ length: 4 }, () => fork(child, [directory, 'hold'], { stdio: 'ignore' }))
    children.push(...asking)
    const outcomes = await Promise.all(
      asking.map((process) => Promise.race([once(process, 'message').then(() => 'held'), once(process, 'exit').then(() => 'refused')])),
    )
    expect(outcomes.filter((outcome) => outcome === 'held')).to.have.length(1)
  }).timeout(120_000)

  it('is the old or the new one as a whole, wherever a process crashes while writing', async () => {
    const key = rootOf('two').key.export({ type: 'pkcs8', format: 'pem' }) as string
    const outcomes = new Set<string>()
    for (let end = 1; ; end++) {
      rmSync(directory, { recursive: true, force: true })
      const first = await openFileStorage(directory)
      storeKey(first.keys, rootOf('one').record.id, rootOf('one').key)
      await first.write(withRoot('one'), (await first.read()).version)
      await first.close()
      const { status, stderr } = spawnSync(process.execPath, [child, directory, 'write', String(end), JSON.stringify(withRoot('two')), key], {
        encoding: 'utf8',
      })
      expect([0, null], stderr).to.include(status)
      const storage = await openFileStorage(directory)
      const { state } = await storage.read()
      const name = state.authorities[0]?.id === rootOf('one').record.id ? 'one' : 'two'
      expect(state).to.deep.equal(withRoot(name))
      expect(readKey(storage.keys, rootOf(name).record.id).equals(rootOf(name).key)).to.equal(true)
      await storage.keepKeys([rootOf(name).record.id])
      expect(readdirSync(storage.keys.directory)).to.deep.equal([`${rootOf(name).record.id}.pem`])
      expect(readdirSync(directory).filter((entry) => entry === 'state.json.unfinished')).to.deep.equal([])
      await storage.close()
      outcomes.add(name)
      if (status === 0) break
      expect(end).to.be.lessThan(100)
    }
    expect(outcomes).to.deep.equal(new Set(['one', 'two']))
  }).timeout(400_000)
})
