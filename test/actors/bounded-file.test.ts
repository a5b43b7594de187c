import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type FileBounds, readBoundedFile, readBoundedFileSync } from '../../actors/runtime/bounded-file.ts'

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
    expect(await both(path('text'), { most: 199_999 })).to.equal('Error: has more than 199999 bytes')
    expect(await both(path('none'), { most: 1 })).to.include('ENOENT')
  })

  it('rejects pipes and devices without waiting, and limits files that do not report their size', async () => {
    execFileSync('mkfifo', [path('pipe')])
    for (const name of [path('pipe'), '/dev/zero', dir]) expect(await both(name, { most: 10 })).to.equal('Error: is not a file')
    expect(await both('/proc/self/status', { most: 10 })).to.equal('Error: has more than 10 bytes')
  })

  it('checks a file before it is read, and can reject symbolic links', async () => {
    const check = () => {
      throw new Error('belongs to somebody else')
    }
    expect(await both(path('text'), { most: 200_000, check })).to.equal('Error: belongs to somebody else')
    symlinkSync(path('text'), path('link'))
    expect(await both(path('link'), { most: 200_000, refusesLinks: true })).to.include('ELOOP')
    expect(await both(path('link'), { most: 200_000 })).to.have.length(100_000)
  })
})
