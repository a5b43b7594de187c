/** An agent that restarts with its saved secrets. */
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { writeKeptFile } from '../../actors/agent/sds/kept-file.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { AgentSecrets, workload } from '../harness/agent-secrets.ts'
import { until } from '../harness/until.ts'

/** Puts a pipe without a writer in the place of a file. */
function makePipe(path: string): void {
  rmSync(path)
  execFileSync('mkfifo', ['-m', '600', path])
}

describe('saved secrets of an agent', () => {
  let at: AgentSecrets
  beforeEach(() => {
    at = new AgentSecrets()
  })
  afterEach(() => at.dispose())
  const keptIn = () => at.path('state/secrets')
  /** Runs an agent until it has saved its secrets. Returns its certificate. */
  async function kept(service: Awaited<ReturnType<AgentSecrets['authority']>>): Promise<string> {
    await at.agent(service, { keptIn: keptIn() })
    const client = at.envoy(['default'])
    await until('the certificate', () => client.responses.length === 1)
    await at.stopAgents()
    return client.last('default')?.chain as string
  }

  it('are served at once without an authority, and renewed in time when there is one', async () => {
    const service = await at.authority()
    service.lifeMs = 6000
    const chain = await kept(service)
    await service.stop()
    const state = await at.agent(service, { keptIn: keptIn() })
    const client = at.envoy(['default'])
    const roots = at.envoy(['ROOTCA'])
    await until('the kept', () => client.last('default')?.chain === chain && roots.last('ROOTCA')?.roots === service.bundle)
    expect(at.lines.join('\n')).to.match(/certificate of .* loaded from .*state\/secrets, valid until/)
    await until('that it cannot be renewed', () => state().fault !== undefined)
    await service.start()
    const late = at.accepting(['default'])
    await until('the next', () => late.last('default') !== undefined && late.last('default')?.chain !== chain)
  })

  it('are readable for their user only, and not requested again while they are valid', async () => {
    const service = await at.authority()
    const chain = await kept(service)
    const modes = ['', '/secrets.json', '/root-cert.pem'].map((name) => statSync(keptIn() + name).mode & 0o777)
    expect(modes).to.deep.equal([0o700, 0o600, 0o600])
    expect(at.read('state/secrets/root-cert.pem')).to.equal(service.bundle)
    expect(await kept(service)).to.equal(chain)
    expect(service.calls).to.have.length(1)
  })

  it('that have expired are not served, but their roots are, and verify the authority', async () => {
    const service = await at.authority()
    service.lifeMs = 400
    const chain = await kept(service)
    service.lifeMs = 600_000
    at.write('roots.pem', 'garbled')
    await until('the end of the certificate', () => Date.now() - 1000 > statSync(`${keptIn()}/secrets.json`).mtimeMs)
    expect(await kept(service)).not.to.equal(chain)
    expect(at.lines.join('\n')).to.match(/warn the saved certificate in .* is not used: the certificate is valid from .*; its roots are/)
  })

  it('that are not valid yet, by a clock that is behind, are served once they are valid, although the authority is down', async () => {
    const service = await at.authority()
    service.validInMs = 3000
    const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    const [leaf = '', roots = ''] = service.chain(makeSigningRequest(key, [{ uri: workload }]))
    const text = key.export({ type: 'sec1', format: 'pem' }).toString()
    writeKeptFile(keptIn(), { identity: workload, authority: 'any:1', chain: leaf, roots, key: text, issuedAt: Date.now() })
    await service.stop()
    await at.agent(service, { keptIn: keptIn() })
    const client = at.envoy(['default'])
    await until('the kept', () => client.last('default')?.chain === leaf)
    expect(at.lines.join('\n')).to.match(/warn the saved certificate in .* is not used: the certificate is valid from .*; its roots are/)
  })

  const ignored: [what: string, spoil: (file: string) => void, changes: object, reason: RegExp][] = [
    [
      'are of another workload',
      () => {},
      { identity: 'spiffe://cluster.local/ns/shop/sa/db' },
      /is of "spiffe:\/\/cluster.local\/ns\/shop\/sa\/web"/,
    ],
    ['are for another trust domain', () => {}, { identity: 'spiffe://other/ns/shop/sa/web' }, /is of "spiffe:\/\/cluster.local/],
    ['have a key of another kind', () => {}, { key: { type: 'rsa', format: 'pkcs8' } }, /has a key of type ec/],
    ['are garbled', (file) => writeFileSync(file, '{"version":1'), {}, /secrets.json: is not JSON/],
    ['are a pipe', makePipe, {}, /secrets.json: is not a regular file/],
    ['others can use', (file) => chmodSync(file, 0o644), {}, /secrets.json: others can use it \(mode 0644\)/],
  ]
  for (const [what, spoil, changes, reason] of ignored)
    it(`that ${what} are ignored with a warning`, async () => {
      const service = await at.authority()
      const chain = await kept(service)
      spoil(`${keptIn()}/secrets.json`)
      if ('identity' in changes) service.identity = changes.identity as string
      await at.agent(service, { keptIn: keptIn(), ...changes })
      const client = at.envoy(['default'])
      await until('another certificate', () => client.responses.length === 1)
      expect(client.last('default')?.chain).not.to.equal(chain)
      expect(at.lines.filter((line) => line.startsWith('warn')).join('\n'))
        .to.match(/^warn the saved certificate and roots in .* are not used: /)
        .and.match(reason)
      expect(at.lines.join('\n')).not.to.include('PRIVATE KEY')
    })

  it('that cannot be written cause one warning', async () => {
    const service = await at.authority()
    service.lifeMs = 1500
    at.write('state', 'a file')
    await at.agent(service, { keptIn: keptIn() })
    const client = at.accepting(['default'])
    await until('two renewals', () => client.responses.length > 2)
    expect(at.lines.filter((line) => line.includes('could not be saved for a restart'))).to.have.length(1)
  })
})
