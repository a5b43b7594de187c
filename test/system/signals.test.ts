import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { anyPorts, Launched, launchers } from '../harness/launched.ts'
import { OwnTime } from '../harness/own-time.ts'
import { until } from '../harness/until.ts'

const discovery = ['discovery', '--registries', 'Mock', ...anyPorts]
const ready = 'ready after'

describe('signals', () => {
  const started: Launched[] = []
  afterEach(() => {
    for (const process of started.splice(0)) process.dispose()
  })
  const launch = async (command: readonly string[], words: string = ready, env: Record<string, string> = {}) => {
    const process = new Launched(command, env)
    started.push(process)
    await process.output.says(words)
    return process
  }
  const gone = (process: Launched) => until('no process to be left', () => process.members().length === 0)

  for (const [name, command] of Object.entries(launchers)) {
    describe(`under ${name}`, () => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) {
        it(`${signal} to the process group shuts the service down once, in order`, async () => {
          const process = await launch([...command, ...discovery])
          process.signalAll(signal)
          expect(await process.ended).to.deep.equal({ code: 0, signal: null })
          await process.output.says(/shutting down/, 1, 1)
          await gone(process)
        })
      }

      it('SIGTERM to the first process only shuts the service down in order', async () => {
        const process = await launch([...command, ...discovery])
        process.signal('SIGTERM')
        expect(await process.ended).to.deep.equal({ code: 0, signal: null })
        await process.output.says('shutting down: SIGTERM')
        await gone(process)
      })

      it('a signal during the start shuts the service down in order', async () => {
        const process = await launch([...command, ...discovery], 'listening addresses')
        process.signalAll('SIGINT')
        expect(await process.ended).to.deep.equal({ code: 0, signal: null })
        await gone(process)
      })

      it('a second SIGINT ends the service at once, by that signal', async () => {
        const process = await launch([...command, ...discovery])
        const stream = await openStream(await process.address('gRPC'))
        process.signalAll('SIGINT')
        await process.output.says('shutting down')
        const asked = new OwnTime()
        process.signalAll('SIGINT')
        expect(await process.ended).to.deep.equal({ code: null, signal: 'SIGINT' })
        expect(asked.ms(), 'milliseconds until the end').to.be.lessThan(700)
        stream.destroy()
        await gone(process)
      })

      it('SIGHUP reads the files again, and SIGUSR1 opens no debugger', async () => {
        const process = await launch([...command, ...discovery])
        process.signalAll('SIGHUP')
        await process.output.says('SIGHUP: reading configuration files again')
        process.signalAll('SIGUSR1')
        await process.output.says('SIGUSR1 is ignored')
        process.signalAll('SIGHUP')
        await process.output.says('SIGHUP: reading configuration files again', 2)
        process.output.lacks('Debugger')
        process.output.lacks('shutting down')
      })

      it('a failed start has its exit status passed on', async () => {
        const process = await launch([...command, 'discovery', '--httpAddr', 'nonsense'], 'is not an address')
        expect(await process.ended).to.deep.equal({ code: 255, signal: null })
      })
    })
  }

  it('a killed wrapper leaves no process behind', async () => {
    const process = await launch([...launchers['an older Node'], ...discovery])
    expect(process.members()).to.have.length(2)
    process.signal('SIGKILL')
    await process.output.says('shutting down: the wrapper')
    await gone(process)
  })

  it('a killed service ends its wrapper with the same signal', async () => {
    const process = await launch([...launchers['an older Node'], ...discovery])
    const service = process.members().find((pid) => pid !== process.pid) ?? 0
    globalThis.process.kill(service, 'SIGKILL')
    expect(await process.ended).to.deep.equal({ code: null, signal: 'SIGKILL' })
  })

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    it(`npm that ends by ${signal} leaves no process behind`, async () => {
      const process = await launch(['npm', 'start', '--', ...anyPorts])
      process.signal(signal)
      await process.output.says('shutting down')
      await gone(process)
    })
  }

  it('Ctrl-C under npm start shuts the service down once, in order', async () => {
    const process = await launch(['npm', 'start', '--', ...anyPorts])
    process.signalAll('SIGINT')
    await process.ended
    await process.output.says('shutting down: SIGINT')
    await gone(process)
    await process.output.says(/shutting down/, 1, 1)
  })

  it('SIGHUP reads a file whose change left no trace in its timestamps', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-hup-'))
    try {
      const file = join(dir, 'entry.yaml')
      const then = new Date(0)
      const write = (host: string) => {
        writeFileSync(
          file,
          `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: one, namespace: shop}\nspec: {hosts: [${host}], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}\n`,
        )
        utimesSync(file, then, then)
      }
      write('a.example')
      const process = await launch([...launchers['the pinned Node'], ...discovery, '--configDir', dir])
      write('b.example')
      process.signal('SIGHUP')
      await process.output.says('configuration files read again: 1')
      const page = async () => (await fetch(`http://${await process.address('HTTP')}/debug/configz`)).text()
      await until('the new host', async () => (await page()).includes('b.example'))
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })
})

/** Opens a stream that stays open, so that a regular shutdown takes time. */
async function openStream(address: string) {
  const session = connect(`http://${address}`)
  session.on('error', () => {})
  const stream = session.request({
    ':method': 'POST',
    ':path': '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
    'content-type': 'application/grpc',
  })
  stream.on('error', () => {})
  await new Promise((resolve, reject) => {
    stream.on('response', resolve)
    stream.on('close', () => reject(new Error('the stream has ended without a response')))
  })
  return session
}
