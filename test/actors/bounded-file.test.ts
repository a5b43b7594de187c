import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type FileBounds, readBoundedFile, readBoundedFileSync, readIfThere } from '../../actors/runtime/bounded-file.ts'
import { FileTimeouts } from '../../actors/runtime/file-timeouts.ts'
import { Owner } from '../../actors/runtime/owner.ts'

describe('the reader of bounded files', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-bounded-'))
  const path = (name: string) => join(dir, name)
  after(() => rmSync(dir, { recursive: true }))

  const outcome = async (read: () => string | Promise<string>): Promise<string> => {
    try {
      return await read()
    } catch (error) {
      return `Error: ${(error as Error).message}`
    }
  }
  async function both(name: string, bounds: FileBounds): Promise<string> {
    const [later, now] = [await outcome(() => readBoundedFile(name, bounds)), await outcome(() => readBoundedFileSync(name, bounds))]
    expect(later).to.equal(now)
    return now
  }

  it('reads a whole file up to the limit', async () => {
    const text = 'é'.repeat(100_000)
    writeFileSync(path('text'), text)
    expect(await both(path('text'), { most: 200_000 })).to.equal(text)
    expect(await both(path('text'), { most: 199_999 })).to.equal(`Error: ${path('text')}: has more than 199999 bytes`)
    expect(await both(path('none'), { most: 1 })).to.match(/^Error: \S+none: ENOENT/)
  })

  it('rejects pipes and devices without waiting, and limits files that do not report their size', async () => {
    execFileSync('mkfifo', [path('pipe')])
    for (const name of [path('pipe'), '/dev/zero', dir]) expect(await both(name, { most: 10 })).to.equal(`Error: ${name}: is not a file`)
    expect(await both('/proc/self/status', { most: 10 })).to.equal('Error: /proc/self/status: has more than 10 bytes')
  })

  it('checks a file before it is read, and can reject symbolic links', async () => {
    const check = () => {
      throw new Error('belongs to somebody else')
    }
    expect(await both(path('text'), { most: 200_000, check })).to.equal(`Error: ${path('text')}: belongs to somebody else`)
    symlinkSync(path('text'), path('link'))
    expect(await both(path('link'), { most: 200_000, refusesLinks: true })).to.include('ELOOP')
    expect(await both(path('link'), { most: 200_000 })).to.have.length(100_000)
  })

  it('reads at most 1 MiB by default, and tells a missing file from one that cannot be read', async () => {
    writeFileSync(path('large'), 'x'.repeat(1_048_577))
    expect(await both(path('large'), {})).to.equal(`Error: ${path('large')}: has more than 1048576 bytes`)
    expect(await readIfThere(path('none'))).to.equal(undefined)
    expect(await readIfThere(join(path('large'), 'below'))).to.equal(undefined)
    expect(await readIfThere(path('link'))).to.have.length(100_000)
    expect(await outcome(async () => String(await readIfThere(dir)))).to.equal(`Error: ${dir}: is not a file`)
  })

  it('gives up on a file system that does not answer, also for an actor that has ended', async () => {
    class Silent extends FileTimeouts {
      override run<T>(): Promise<T> {
        return super.run(() => new Promise<T>(() => undefined))
      }
    }
    const timeouts = new Silent(20)
    const ended = new Owner(() => undefined)
    const reading = ended.run(() => outcome(() => readBoundedFile(path('text'), { timeouts })))
    ended.end()
    expect(await reading).to.equal(`Error: ${path('text')}: no answer within 20 ms`)
  })
})
