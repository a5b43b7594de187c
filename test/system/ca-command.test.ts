/** Rotation of the root through the real command while workloads request certificates; the command with and without a running server. */
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import type { AuthorityStatus, LedgerPage } from '../../protocols/messages/authority-status.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { rootOf } from '../harness/authorities.ts'
import { CertificateClient } from '../harness/certificate-client.ts'
import { certificatesIn, openssl } from '../harness/key-stores.ts'
import { beginRotation } from '../harness/rotations.ts'
import { type CommandResult, runCommand, Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { keys } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const identity = 'spiffe://cluster.local/ns/shop/sa/cart'

describe('pilot-discovery ca', () => {
  const services: Service[] = []
  const clients: CertificateClient[] = []
  after(async () => {
    for (const client of clients) client.close()
    for (const service of services) await service.dispose()
  })

  /** Starts a service with an authority, and returns functions that request certificates and run the command. */
  const started = async (env: Record<string, string> = {}) => {
    const service = new Service({ env })
    services.push(service)
    const made = new ServingCertificates(service.dir)
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('cart', 'ca', [identity])
    const port = await freePort()
    service.flags.push('--writers', '1', '--secureGRPCAddr', `127.0.0.1:${port}`)
    service.flags.push(...made.servingFlags())
    const plugged = join(service.dir, '.plugged')
    service.env.ROOT_CA_DIR = plugged
    const ca = (...args: string[]): Promise<CommandResult> => runCommand(['ca', ...args], service.env)
    /** Requests a certificate, with the one in `held`, or else with one of another authority. */
    const renew = async (held?: readonly string[]): Promise<readonly string[]> => {
      const own = { key: made.text('cart-key.pem'), cert: made.text('cart.pem') }
      const presented = held ? { key: keys.p256.export({ type: 'pkcs8', format: 'pem' }) as string, cert: held.slice(0, -1).join('') } : own
      const client = new CertificateClient(port, { roots: made.text('ca.pem'), ...presented })
      clients.push(client)
      const outcome = await client.obtain(makeSigningRequest(keys.p256, [{ uri: identity }]), 3600n)
      if ('chain' in outcome) return outcome.chain
      throw new Error(`${outcome.code} ${outcome.details}`)
    }
    await service.start()
    await until('the authority', async () => (await ca('show')).code === 0)
    const page = async () => JSON.parse((await ca('show', '--json')).stdout) as AuthorityStatus
    return { service, ca, renew, page, plugged, made, port }
  }

  /** Whether OpenSSL verifies a chain with these roots only. */
  const verifies = (service: Service, [leaf = '', between]: readonly string[], roots: string): boolean => {
    const file = (name: string, content: string) => {
      writeFileSync(join(service.dir, name), content)
      return join(service.dir, name)
    }
    const untrusted = between === undefined ? [] : ['-untrusted', file('.between.pem', between)]
    try {
      execFileSync('openssl', ['verify', '-CAfile', file('.roots.pem', roots), ...untrusted, file('.leaf.pem', leaf)], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  }
  const certificates = (pem = '') => pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n?/g) ?? []

  it('rotates the root in stages, each waiting for workloads that have not renewed, across server crashes', async () => {
    const { service, ca, renew, page } = await started()
    const first = await renew()
    const [old = ''] = certificates(first.at(-1))
    expect(first).to.have.length(2)

    await beginRotation(ca)
    const bundles: number[] = []
    let renewed = first
    for (const next of ['trust-both', 'sign-with-new', 'retire', 'stable']) {
      const refused = await ca('rotate')
      expect(refused.code).to.equal(255)
      expect(refused.stderr).to.match(
        /^Error: the rotation stays in stage \S+: 1 holder of certificates is not ready; --force continues without them\n$/,
      )
      expect(refused.stdout).to.include(`  ${identity} is not connected from 127.0.0.1, where it holds certificate `)
      expect((await ca('rotate', '--dry-run')).stdout).to.equal(refused.stdout)
      renewed = await renew(renewed)
      bundles.push(certificates(renewed.at(-1)).length)
      if (next === 'trust-both' || next === 'retire') {
        // The ledger is saved soon after a change, at the latest at a regular exit.
        await service.stop()
        await service.start()
        await until('the authority', async () => (await ca('show')).code === 0)
      }
      if (next === 'sign-with-new') {
        const serial = new X509Certificate(renewed[0] ?? '').serialNumber.toLowerCase()
        await until('the ledger to be kept', () => readFileSync(join(service.authorityDir, 'ledger.json'), 'utf8').includes(`"serial":"${serial}"`))
        await service.stop('SIGKILL')
        await service.start()
        await until('the authority', async () => (await ca('show')).code === 0)
      }
      expect((await ca('rotate')).stdout).to.include(`to ${next}.`)
    }
    expect(bundles, 'roots in answers').to.deep.equal([2, 2, 2, 1])

    const last = await renew()
    const [now = ''] = certificates(last.at(-1))
    expect(now).not.to.equal(old)
    expect(new X509Certificate(now).publicKey.equals(new X509Certificate(old).publicKey), 'a new key').to.equal(false)
    expect([verifies(service, last, now), verifies(service, last, old), verifies(service, first, now)]).to.deep.equal([true, false, false])
    const stored = () => readdirSync(join(service.authorityDir, 'keys'))
    await until('the old key to be removed, since the holder has presented a certificate of the new root', () => stored().length === 1)
    const shown = await page()
    expect(shown.rotation.stage).to.equal('stable')
    expect(shown.roots.map(({ uses }) => uses)).to.deep.equal([
      ['signs workload certificates', 'signs serving certificates', 'sent to workloads', 'accepted from clients'],
    ])
    expect((await ca('ledger', '--identity', 'ns/shop/')).stdout).to.match(
      new RegExp(`\\n${identity}  0 +127\\.0\\.0\\.1  [0-9a-f]{32}  [0-9a-f]{16}  `),
    )
    expect((await ca('ledger', '--identity', 'elsewhere')).stdout.trim().split('\n')).to.have.length(1)
  })

  it('waits for each machine of an identity behind one address', async () => {
    const { ca, renew } = await started()
    const [first, second] = [await renew(), await renew()]
    await beginRotation(ca)
    await renew(first)
    const refused = await ca('rotate')
    expect(refused.code).to.equal(255)
    const serial = new X509Certificate(second[0] ?? '').serialNumber.toLowerCase()
    expect(refused.stdout).to.include(`  ${identity} is not connected from 127.0.0.1, where it holds certificate ${serial} of an earlier stage; `)
    await renew(second)
    expect((await ca('rotate')).stdout).to.include('to trust-both.')
  })

  it('forces a rotation over workloads that have not renewed, which can verify new certificates through the cross certificate', async () => {
    const { service, ca, renew } = await started()
    const [old = ''] = certificates((await renew()).at(-1))
    await ca('rotate')
    await ca('rotate', '--force')
    const forced = await ca('rotate', '--force')
    expect(forced.stdout).to.equal('The rotation went from trust-both to sign-with-new. Blockers that were overruled: 1.\n')
    await service.output.says(`stage trust-both was ended by force although ${identity} is not connected`)
    const renewed = await renew()
    expect(renewed).to.have.length(3)
    const [fresh = '', former] = certificates(renewed.at(-1))
    expect(former).to.equal(old)
    expect([verifies(service, renewed, old), verifies(service, renewed, fresh), verifies(service, renewed.toSpliced(1, 1), fresh)]).to.deep.equal([
      true,
      true,
      true,
    ])
    const metrics = await service.metrics()
    expect(metrics).to.include('citadel_server_rotation_stage 3')
    expect(metrics).to.include('citadel_server_rotation_steps_total{stage="sign-with-new",forced="true"} 1')
    const { identities } = await service.debug<{ identities: { identity: string }[] }>('ca_ledger?start=0&length=1')
    expect(identities.map((row) => row.identity)).to.deep.equal([identity])
    const posted = await fetch(`http://127.0.0.1:${service.httpPort}/debug/ca_rotate`, { method: 'POST', body: 'force=true' })
    expect(posted.status, 'by the admin socket only').to.equal(404)
  })

  it('waits for a proxy on the secured port until it has a certificate, and names proxies on the plaintext port', async () => {
    const { service, ca, renew, page, made, port } = await started()
    const bytes = (name: string) => Buffer.from(made.text(name))
    const tls = credentials.createSsl(bytes('ca.pem'), bytes('cart-key.pem'), bytes('cart.pem'), { checkServerIdentity: () => undefined })
    const secured = new XdsClient(port, sidecarNode('127.0.0.1', 'cart', 'shop'), false, tls).connect()
    const plain = new XdsClient(service.grpcPort, sidecarNode('10.0.0.2', 'old', 'shop'), false).connect()
    try {
      for (const client of [secured, plain]) client.watch(clusterType, [])
      await until('both in the ledger', async () => {
        const { rotation } = await page()
        const { identities } = JSON.parse((await ca('ledger', '-o', 'json')).stdout) as LedgerPage
        return rotation.plaintextProxies === 1 && identities.some(({ proxies }) => proxies.includes(secured.node.id))
      })
      await ca('rotate')
      const refused = await ca('rotate')
      expect(refused.code).to.equal(255)
      expect(refused.stdout).to.include(`  ${identity} is connected, and has not renewed certificate `)
      expect(refused.stdout).to.include(`\n    ${secured.node.id}\n`)
      expect(refused.stdout).to.include(`Proxies on the plaintext port, without a certificate; they do not block: 1\n  ${plain.node.id}\n`)
      await renew()
      expect((await ca('rotate')).stdout).to.equal('The rotation went from announce to trust-both.\n')
    } finally {
      for (const client of [secured, plain]) client.close()
    }
    await until('the streams to be gone', async () => (await page()).rotation.plaintextProxies === 0)
  })

  it('keeps a plugged-in root trusted for some time after it was replaced', async () => {
    const { ca, renew, page, plugged } = await started()
    const own = (await page()).roots[0]?.id
    await renew()
    const plug = async (name: string) => {
      const { record, key } = rootOf(name)
      writeFileSync(join(plugged, '..', '.cert'), record.certificate)
      writeFileSync(join(plugged, '..', '.key'), key.export({ type: 'pkcs8', format: 'pem' }))
      const { stderr } = await ca('import', '--replace', '--cert', join(plugged, '..', '.cert'), '--key', join(plugged, '..', '.key'))
      expect(stderr).to.equal('')
      await until(
        'it to be in force',
        async () => (await page()).roots.find(({ uses }) => uses.includes('signs workload certificates'))?.id === record.id,
      )
      return record.id
    }
    const uses = async () => Object.fromEntries((await page()).roots.map((root) => [root.id, root.uses.join()]))
    const first = await plug('first')
    const signing = 'signs workload certificates,signs serving certificates,sent to workloads,accepted from clients'
    const former = 'sent to workloads,accepted from clients,replaced'
    expect(await uses()).to.deep.equal({ [first]: signing, [own ?? '']: former })
    await renew()
    const second = await plug('second')
    expect(await uses()).to.deep.equal({ [second]: signing, [first]: former, [own ?? '']: former })
    expect(certificates((await renew()).at(-1))).to.have.length(3)
  })

  it('rotates automatically when the root is near its expiry', async () => {
    const { service, renew } = await started({
      CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: '200ms',
      CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR: 'false',
      CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: '100',
    })
    await service.output.says('the root rotation goes from retire to stable')
    await service.output.says('less than 100 % of the life of root')
    await renew()
    await service.output.says(new RegExp(`stays in stage \\S+: ${identity} is not connected`))
  })

  it('works on the saved state without a server, and refuses while a server uses that state', async () => {
    const { service, ca, page, plugged } = await started()
    const online = await page()
    const aside = { ...service.env, MESHD_ADMIN_SOCKET: join(service.dir, '.nowhere/admin.sock') }
    const behind = await runCommand(['ca', 'show'], aside)
    expect(behind.stderr).to.match(/is in use by process \d+ on \S+ \(.*discovery.*\); stop it, or name another directory/)
    await service.stop()
    const { clock, ...offline } = await page()
    expect({ ...offline, clock: { ...online.clock, verdict: clock.verdict } }).to.deep.equal(online)
    await beginRotation(ca)
    expect((await ca('show')).stdout).to.include('Rotation stage: announce since ')
    writeFileSync(join(service.authorityDir, 'ledger.json'), '{')
    expect((await ca('ledger')).stderr).to.match(
      /^the ledger of issued certificates begins anew, and is not saved before the stored one is restored or removed: /,
    )
    const exported = await ca('export', '--to', join(service.dir, '.out'), '--private-key')
    expect(exported.stdout.trim().split('\n')).to.deep.equal(
      ['root-cert', 'ca-cert', 'ca-key'].map((name) => join(service.dir, '.out', `${name}.pem`)),
    )
    const out = (name: string) => join(service.dir, '.out', `${name}.pem`)
    const imported = await ca('import', '--cert', out('ca-cert'), '--key', out('ca-key'), '--root', out('root-cert'))
    expect(imported.stdout, imported.stderr).to.include(join(plugged, 'ca-key.pem'))
    expect((await ca('show')).stdout).to.include('Authority: plugged in (ROOT_CA_DIR or Secret cacerts)')
    expect((await ca('rotate', '--force')).stderr).to.include('only a root of its own is rotated')
    await service.start()
    await until('the authority that is plugged in', async () => (await page().catch(() => online)).source === 'plugged-in')
    await service.stop()
    rmSync(service.authorityDir, { recursive: true })
    expect((await ca('show')).stderr).to.match(/no server listens on the admin socket .*, and .* holds no authority/)
    expect((await ca('import', '--key', 'x')).stderr).to.equal('Error: --cert is needed\n')
    expect((await ca('show', '-o', 'xml')).stderr).to.equal("Error: --output must be 'json'\n")
  })

  it('exports a trust store and imports a key store', async () => {
    const { service, ca, page, plugged } = await started()
    const file = (name: string) => join(service.dir, `.${name}`)
    writeFileSync(file('password'), 'changeit')
    const [own] = (await page()).roots
    const exported = await ca('export', '--truststore', file('roots.p12'), '--password-file', file('password'))
    expect(exported.stdout, exported.stderr).to.equal(`${file('roots.p12')}\n`)
    const held = openssl('pkcs12', '-in', file('roots.p12'), '-nokeys', '-passin', `file:${file('password')}`)
    expect(certificatesIn(held)).to.deep.equal(certificatesIn(own?.certificate ?? ''))
    const { record, key } = rootOf('stored')
    writeFileSync(file('root'), record.certificate)
    writeFileSync(file('key'), key.export({ type: 'pkcs8', format: 'pem' }))
    openssl('pkcs12', '-export', '-in', file('root'), '-inkey', file('key'), '-passout', `file:${file('password')}`, '-out', file('ca.p12'))
    const imported = await ca('import', '--pkcs12', file('ca.p12'), '--password-file', file('password'))
    expect(imported.stdout, imported.stderr).to.include(join(plugged, 'ca-key.pem'))
    await until(
      'it to be in force',
      async () => (await page()).roots.find(({ uses }) => uses.includes('signs workload certificates'))?.id === record.id,
    )
    const refused: readonly (readonly [string, ...string[]])[] = [
      ['--truststore writes one file: neither --to nor --private-key goes with it', 'export', '--truststore', 'x.p12', '--private-key'],
      ['--password-file has no effect without --truststore', 'export', '--password-file', 'x'],
      ['--pkcs12 and --chain contradict each other: both name it', 'import', '--pkcs12', 'x', '--chain', 'y'],
      ['--password-file has no effect without --pkcs12', 'import', '--cert', 'x', '--key', 'y', '--password-file', 'z'],
    ]
    for (const [reason, ...args] of refused) expect((await ca(...args)).stderr).to.equal(`Error: ${reason}\n`)
  })

  it('has help for each of its subcommands', async () => {
    const { stdout } = await runCommand(['ca'])
    expect(stdout).to.match(/^Look at the certificate authority/)
    for (const name of ['show', 'ledger', 'rotate', 'export', 'import']) expect(stdout).to.include(`ca ${name} `)
    expect((await runCommand(['ca', 'rotate', '--help'])).stdout).to.include('--dry-run')
  })
})
