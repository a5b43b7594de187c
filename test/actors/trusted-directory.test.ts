import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { trustedDirectory } from '../../actors/runtime/trusted-directory.ts'

/** The user of the tests, and another one that is not root. */
const [own, other] = [process.geteuid?.() ?? 0, 12_345]

describe('a directory of sockets and files', () => {
  let top = ''
  beforeEach(() => {
    top = mkdtempSync(join(tmpdir(), 'mesh-trusted-'))
  })
  afterEach(() => rmSync(top, { recursive: true }))

  const directory = (path: string, mode: number, user = own) => {
    const made = join(top, path)
    mkdirSync(made, { recursive: true })
    chmodSync(made, mode)
    if (user !== own) chownSync(made, user, user)
    return made
  }
  const outcome = (path: string, { user = own, allowVolumes = false } = {}) =>
    trustedDirectory(path, { allowVolumes, user }).then(
      () => 'trusted',
      (error: Error) => error.message.replaceAll(top, ''),
    )
  const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8)

  it('is made with its parents, whatever the umask is', async () => {
    const umask = process.umask(0)
    try {
      expect(await outcome(join(top, 'a/b/c'))).to.equal('trusted')
    } finally {
      process.umask(umask)
    }
    expect(['a', 'a/b', 'a/b/c'].map((path) => modeOf(join(top, path)))).to.deep.equal(['755', '755', '700'])
  })

  it('loses the write permission of others if it is of this user', async () => {
    for (const [before, after] of [
      [0o777, '755'],
      [0o2777, '2755'],
      [0o775, '755'],
      [0o1777, '1777'],
      [0o755, '755'],
      [0o700, '700'],
    ] as const) {
      const path = directory('open', before)
      expect([await outcome(path), modeOf(path)]).to.deep.equal(['trusted', after])
    }
  })

  it('is refused below a directory that others may write to, also on the way of a link, but not if that is sticky', async () => {
    const path = directory('shared/inner', 0o700)
    const shared = directory('shared', 0o777)
    const refusal = `/shared/inner: /shared has mode 0777: other users could replace what is below it (chmod o-w, or chmod +t)`
    expect(await outcome(path)).to.equal(refusal)
    symlinkSync(path, join(top, 'link'))
    expect(await outcome(join(top, 'link'))).to.equal(refusal.replace('/shared/inner', '/link'))
    const safe = directory('safe', 0o700)
    symlinkSync(safe, join(shared, 'link'))
    expect(await outcome(join(shared, 'link'))).to.equal(refusal.replace('/inner', '/link'))
    chmodSync(shared, 0o1777)
    expect([await outcome(path), await outcome(join(shared, 'link'))]).to.deep.equal(['trusted', 'trusted'])
  })

  it('is refused if it is a file', async () => {
    writeFileSync(join(top, 'file'), '')
    expect(await outcome(join(top, 'file'))).to.equal('/file: is not a directory')
  })

  describe('of other users', () => {
    before(function () {
      if (own !== 0) this.skip()
    })

    it('is refused, and so is one below a directory of another user', async () => {
      const path = directory('theirs/mine', 0o700)
      expect(await outcome(directory('others', 0o755, other))).to.equal(
        `/others: belongs to user ${other}; the directory must belong to the user of this process or to root`,
      )
      directory('theirs', 0o755, other)
      expect(await outcome(path)).to.equal(
        `/theirs/mine: /theirs belongs to user ${other}, who could replace it; it must belong to the user of this process or to root`,
      )
      expect(await outcome(path, { user: other }), 'as that user').to.equal('trusted')
    })

    it('is refused if it is of root and open, unless it is a volume of an orchestrator', async () => {
      for (const mode of [0o777, 0o2777]) {
        const volume = directory('volume', mode)
        expect(await outcome(volume, { user: other })).to.equal(
          `/volume: has mode ${mode.toString(8).padStart(4, '0')}: other users could replace the sockets and files of this process (chmod go-w, or give it to user ${other})`,
        )
        expect([await outcome(volume, { user: other, allowVolumes: true }), statSync(volume).mode & 0o7777]).to.deep.equal(['trusted', mode])
        const inner = directory('volume/proxy', 0o700, other)
        expect(await outcome(inner, { user: other, allowVolumes: true })).to.equal('trusted')
        expect(await outcome(inner, { user: other })).to.match(/^\/volume\/proxy: \/volume has mode /)
      }
    })
  })
})
