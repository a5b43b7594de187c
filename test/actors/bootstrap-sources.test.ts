/** The files and settings that the agent reads for the bootstrap of its proxy. */
import { lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { interfaceAddresses, meshFileLayer, textLayer } from '../../actors/agent/bootstrap/sources.ts'
import { writeBootstrap } from '../../actors/agent/bootstrap/write-bootstrap.ts'
import { unfinished } from '../../actors/runtime/durable-file.ts'
import { type GivenProxy, prepareTestProxy } from '../harness/prepared-proxy.ts'

describe('sources of the bootstrap', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-sources-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const said: string[] = []
  const log = {
    debug: () => {},
    info: (text: string) => said.push(text),
    warn: (text: string) => said.push(text),
    error: (text: string) => said.push(text),
  }
  beforeEach(() => said.splice(0))

  const failure = async (promise: Promise<unknown>): Promise<string> => promise.then(String, (error: Error) => error.message)

  it('wait for an interface without an address', async () => {
    const reads = [
      ['10.0.0.1', '0.0.0.0'],
      ['10.0.0.1', '::'],
      ['10.0.0.1', '10.0.0.2'],
    ]
    expect(await interfaceAddresses(log, () => reads.shift() ?? [])).to.deep.equal(['10.0.0.1', '10.0.0.2'])
    expect(said).to.deep.equal(['no network interface has an address yet: the agent waits for one'])
    expect(await interfaceAddresses(log)).to.not.include('127.0.0.1')
  })

  it('are YAML or JSON of limited size and depth, and rejected with their name otherwise', async () => {
    expect((await textLayer('s', ' {"a": {"b": 1}}')).document).to.deep.equal({ a: { b: 1 } })
    expect((await textLayer('s', '{a: [1, x]}')).document).to.deep.equal({ a: [1, 'x'] })
    expect((await textLayer('s', 'a:\n  b: 1\n')).document).to.deep.equal({ a: { b: 1 } })
    expect((await textLayer('s', ' \n')).document).to.equal(undefined)
    expect(await failure(textLayer('s', 'a: 1\n---\nb: 1\n'))).to.equal('s: holds more than one document')
    expect(await failure(textLayer('s', `a: ${'x'.repeat(1024 * 1024)}`))).to.equal('s: larger than 1 MiB')
    expect(await failure(textLayer('s', `a: ${'['.repeat(100)}${']'.repeat(100)}`))).to.equal('s: nested deeper than 64 levels')
    expect(await failure(textLayer('s', 'a: "b'))).to.match(/^s: not YAML, line 1/)
  })

  it('include only the proxy configuration of the mesh file', async () => {
    const file = (content: string) => {
      writeFileSync(join(folder, 'mesh'), content)
      return meshFileLayer(join(folder, 'mesh'))
    }
    expect((await file('accessLogFile: x\ndefaultConfig: {concurrency: 3}\n')).document).to.deep.equal({ concurrency: 3 })
    expect((await file('{"default_config": {"concurrency": 3}}')).document).to.deep.equal({ concurrency: 3 })
    expect((await file('')).document).to.equal(undefined)
    expect((await meshFileLayer(join(folder, 'none'))).document).to.equal(undefined)
    expect(await failure(file('[a]'))).to.equal(`${join(folder, 'mesh')}: not a mapping`)
    expect(await failure(meshFileLayer(folder))).to.equal(`${folder}: is not a file`)
  })

  const written = (given: GivenProxy) => {
    const { prepared } = prepareTestProxy(given)
    return writeBootstrap({ ...prepared, config: { ...prepared.config, configPath: join(folder, 'proxy') } }, log)
  }

  it('are written to a regular file of its own, even if a symbolic link is in its place', async () => {
    const [other, file] = [join(folder, 'other'), join(folder, 'proxy/envoy-rev0.json')]
    writeFileSync(other, 'kept')
    await written({})
    symlinkSync(other, `${file}${unfinished}`)
    await written({})
    expect(readFileSync(other, 'utf8')).to.equal('kept')
    expect(lstatSync(file).isFile() && lstatSync(file).mode & 0o777).to.equal(0o600)
  })

  it('resolve the statsd address, and ignore an override that exceeds the limit of a command line', async () => {
    const override = join(folder, 'override')
    writeFileSync(override, 'x'.repeat(131_071))
    const { args } = await written({ env: { MESH_BOOTSTRAP_OVERRIDE: override }, proxyConfig: { statsdUdpAddress: 'localhost:9125' } })
    expect(args[args.indexOf('--config-yaml') + 1]).to.have.length(131_071)
    const bootstrap = JSON.parse(readFileSync(join(folder, 'proxy/envoy-rev0.json'), 'utf8'))
    expect(bootstrap.statsSinks[0].typedConfig.address.socketAddress).to.deep.equal({ protocol: 'UDP', address: '127.0.0.1', portValue: 9125 })
    writeFileSync(override, 'x'.repeat(131_072))
    expect((await written({ env: { MESH_BOOTSTRAP_OVERRIDE: override } })).args).to.not.include('--config-yaml')
    expect(said.at(-1)).to.equal(
      `environment variable MESH_BOOTSTRAP_OVERRIDE: ${override}: has 131072 bytes or more, which no command line takes; the bootstrap is not overridden`,
    )
  })

  it('include the existing root files, and a provisioned certificate only if it is complete', async () => {
    for (const name of ['root-cert.pem', 'cert-chain.pem']) writeFileSync(join(folder, name), 'x')
    const given = { env: { PROXY_XDS_VIA_AGENT: 'false', PROV_CERT: folder } }
    const clusters = async () => {
      const { remove } = await written(given)
      const content = readFileSync(join(folder, 'proxy/envoy-rev0.json'), 'utf8')
      await remove()
      return content
    }
    expect(await clusters())
      .to.contain(`"filename": "${folder}/root-cert.pem"`)
      .and.to.contain('"name": "default"')
    writeFileSync(join(folder, 'key.pem'), 'x')
    expect(await clusters())
      .to.contain(`"filename": "${folder}/key.pem"`)
      .and.to.not.contain('"name": "default"')
  })
})
