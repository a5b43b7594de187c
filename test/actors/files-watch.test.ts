import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { OutputFiles } from '../../actors/agent/sds/output-files.ts'
import { FilesWatch } from '../../actors/runtime/files-watch.ts'
import { WorkQueue } from '../../actors/runtime/work-queue.ts'
import { until } from '../harness/until.ts'

describe('the watch of a few files', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-watch-'))
  after(() => rmSync(dir, { recursive: true, force: true }))

  it('begins no read and reports no failure once it is closed', async () => {
    const called: string[] = []
    const reading = Promise.withResolvers<void>()
    const watch = new FilesWatch([join(dir, 'a')], {
      read: () => {
        called.push('read')
        return reading.promise
      },
      refused: (reason) => called.push(reason),
      unwatchable: () => called.push('unwatchable'),
    })
    const next = watch.read()
    await Promise.resolve()
    watch.close()
    reading.reject(new Error('the file is damaged'))
    await Promise.all([next, watch.read()])
    expect(called).to.deep.equal(['read'])
  })

  it('reads a change that is made while it begins to watch, without waiting for an audit', async () => {
    const path = join(dir, 'b')
    writeFileSync(path, 'one')
    const read: string[] = []
    const started = performance.now()
    const watch = new FilesWatch([path], {
      read: async () => void read.push(readFileSync(path, 'utf8')),
      refused: (reason) => read.push(reason),
      unwatchable: (directory) => read.push(directory),
    })
    await Promise.resolve()
    writeFileSync(path, 'two')
    await until('the change to be read', () => read.includes('two'))
    watch.close()
    expect(performance.now() - started, 'milliseconds, of which an audit waits 10,000').to.be.below(9_000)
  })

  it('leaves a queue of jobs as it was: a failed job is reported, the next one runs, none runs after the end', async () => {
    const done: string[] = []
    const queue = new WorkQueue((what, reason) => done.push(`${what}: ${reason}`))
    void queue.add('first', () => Promise.reject(new Error('no')))
    await queue.add('second', async () => void done.push('second'))
    const last = queue.add('third', async () => void done.push('third'))
    queue.close()
    await last
    await queue.add('fourth', async () => void done.push('fourth'))
    expect(done).to.deep.equal(['first: no', 'second'])
  })
})

describe('files of served secrets', () => {
  it('are not written, and not tried again, once they are closed', () => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-output-'))
    const failures: string[] = []
    const files = new OutputFiles({ directory: join(dir, 'file', 'below'), isForAll: false, passwordFile: undefined }, (reason) =>
      failures.push(reason),
    )
    files.close()
    writeFileSync(join(dir, 'file'), '')
    files.write({ 'key.pem': 'key', 'cert-chain.pem': 'chain', 'root-cert.pem': 'roots' })
    expect(failures).to.deep.equal([])
    rmSync(dir, { recursive: true })
  })
})
