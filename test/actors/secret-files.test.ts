/** Secrets in files: those that Envoy requests by path, those that precede the authority's, and those that the agent writes. */
import { execFileSync, spawnSync } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { AgentSecrets, acknowledge } from '../harness/agent-secrets.ts'
import { rootOf, signedBy } from '../harness/authorities.ts'
import { certificatesIn, hasKeytool, keytool, openssl } from '../harness/key-stores.ts'
import { revocationList } from '../harness/revocations.ts'
import { until } from '../harness/until.ts'

const pem = (name: string) => rootOf(name).record.certificate
const keyOf = (name: string) => rootOf(name).key.export({ type: 'pkcs8', format: 'pem' }) as string

describe('secrets in files', () => {
  let at: AgentSecrets
  beforeEach(() => {
    at = new AgentSecrets()
  })
  afterEach(() => at.dispose())
  /** Writes the files of a pair. Returns the name of its secret. */
  const pair = (name: string, files = 'pair') => {
    at.write(`${files}/chain.pem`, pem(name))
    at.write(`${files}/key.pem`, keyOf(name))
    return `file-cert:${at.path(`${files}/chain.pem`)}~${at.path(`${files}/key.pem`)}`
  }

  it('are served by path in SotW and delta, without a certificate authority', async () => {
    await at.start({})
    const [cert, root] = [pair('one'), `file-root:${at.write('ca.pem', `${keyOf('two')}${pem('two')}`)}`]
    const clients = [at.accepting([cert, root]), at.accepting([cert, root], true)]
    for (const client of clients) {
      await until('both', () => client.last(cert) !== undefined && client.last(root) !== undefined)
      expect(client.last(cert)).to.deep.equal({ name: cert, chain: pem('one'), key: keyOf('one') })
      expect(client.last(root), 'without what is no certificate').to.deep.equal({ name: root, roots: pem('two') })
    }
  })

  it('are roots with revocation lists, which are pushed when the lists change, and stay as they are while the lists are invalid', async () => {
    await at.start({})
    const authority = { chain: pem('two'), key: keyOf('two') }
    const lists = [revocationList(authority, []), revocationList(authority, [signedBy(rootOf('two'), rootOf('one'))])] as const
    const root = `file-root:${at.write('ca.pem', pem('two'))}~${at.write('crl.pem', `${lists[0]}${pem('one')}`)}`
    const client = at.accepting([root])
    await until('both', () => client.last(root) !== undefined)
    expect(client.last(root), 'without what is no list').to.deep.equal({ name: root, roots: pem('two'), revocations: lists[0] })
    at.write('crl.pem', pem('one'))
    await until('that there is no list', () => at.lines.some((line) => line.includes('crl.pem: holds no revocation list in PEM')))
    expect(client.last(root)?.revocations).to.equal(lists[0])
    at.write('crl.pem', lists[1])
    await until('the new list', () => client.last(root)?.revocations === lists[1])
  })

  it('are pushed to their subscribers when files are written, replaced by a link, or created again', async () => {
    await at.start({})
    for (const name of ['one', 'two', 'three']) pair(name, `mounted/..${name}`)
    // Orchestrators mount secrets this way: the files are links into a directory that is a link itself.
    symlinkSync('..one', at.path('mounted/..data'))
    for (const name of ['chain.pem', 'key.pem']) symlinkSync(join('..data', name), at.path(`mounted/${name}`))
    const cert = `file-cert:${at.path('mounted/chain.pem')}~${at.path('mounted/key.pem')}`
    const [client, other] = [at.envoy([cert]), at.envoy([pair('one', 'other')])]
    const exchange = (to: string) => {
      symlinkSync(to, at.path('mounted/..next'))
      renameSync(at.path('mounted/..next'), at.path('mounted/..data'))
    }
    await until('the first', () => client.last(cert)?.chain === pem('one') && other.responses.length === 1)
    acknowledge(client, [cert])
    exchange('..two')
    await until('the second', () => client.last(cert)?.chain === pem('two'))
    acknowledge(client, [cert])
    for (const name of ['chain.pem', 'key.pem']) unlinkSync(at.path(`mounted/${name}`))
    await until('that they are missed', () => at.lines.some((line) => line.includes('there is no such file')))
    pair('three', 'mounted')
    await until('the third', () => client.last(cert)?.key === keyOf('three'))
    expect([client.responses.length, other.responses.length]).to.deep.equal([3, 1])
  })

  it('keep their last good state while files are invalid or do not match, with log line and metric', async () => {
    await at.start({})
    const cert = pair('one')
    const client = at.envoy([cert])
    await until('the first', () => client.responses.length === 1)
    at.write('pair/key.pem', keyOf('two'))
    await until('that they do not belong together', () => at.lines.some((line) => /key.pem: is not the key of/.test(line)))
    at.write('pair/key.pem', 'half of a')
    await until('that it is no key', () => at.lines.some((line) => /key.pem: holds no private key/.test(line)))
    const late = at.envoy([cert])
    await until('the last good', () => late.last(cert)?.key === keyOf('one'))
    expect([client.responses.length, at.count('num_file_secret_failures_total')]).to.deep.equal([1, 2])
    expect(at.lines.join()).not.to.include('half of a')
  })

  it('are awaited until they exist', async () => {
    await at.start({})
    const root = `file-root:${at.path('later/ca.pem')}`
    const client = at.envoy([root])
    await until('that it is missed', () => at.lines.some((line) => line.includes('later/ca.pem: there is no such file')))
    at.write('later/ca.pem', pem('one'))
    await until('it', () => client.last(root)?.roots === pem('one'))
  })

  it('in a directory that cannot be watched are logged once, and counted', async () => {
    await at.start({})
    symlinkSync('loop', at.path('loop'))
    for (const name of ['one', 'two']) at.envoy([`file-root:${at.path(`loop/${name}.pem`)}`])
    await until('both to be looked at', () => at.count('num_file_watcher_failures_total') === 2)
    const logged = at.lines.filter((line) => /loop: cannot be watched, and is checked every ten seconds instead: .*ELOOP/.test(line))
    expect(logged).to.have.length(1)
  })

  it('are refused under relative paths, malformed names and names of other secrets', async () => {
    await at.start({})
    const refused = ['file-cert:a.pem~b.pem', 'file-cert:/a~/b~/c', 'file-cert:/a', 'file-root:ca.pem', 'file-root:', 'kubernetes://x', 'other']
    const client = at.envoy(refused, true)
    await until('the answer', () => client.responses.length === 1)
    expect(client.responses[0]?.removed).to.deep.equal(refused)
    expect(at.lines.filter((line) => line.includes('does not have'))).to.have.length(refused.length)
  })

  it('are limited to 256 at a time, and freed without subscribers', async () => {
    await at.start({})
    const first = at.envoy(Array.from({ length: 256 }, (_, index) => `file-root:/nowhere/${index}`))
    await until('all to be looked at', () => at.count('num_file_secret_failures_total') === 256)
    const root = `file-root:${at.write('ca.pem', pem('one'))}`
    const second = at.envoy([root])
    await until('the refusal', () => at.lines.some((line) => line.includes('there are 256 secrets in files')))
    first.close()
    await until('room', () => at.count('total_active_connections') === 1)
    second.close()
    const third = at.envoy([root])
    await until('it', () => third.last(root)?.roots === pem('one'))
  })

  describe('in the mounted directory', () => {
    it('precede those of the authority, which is not asked while both exist', async () => {
      const service = await at.authority()
      const mounted = at.path('certs')
      mkdirSync(mounted)
      const state = await at.agent(service, {}, { mounted })
      const client = at.accepting(['default', 'ROOTCA'])
      await until('the certificate of the authority', () => client.last('ROOTCA')?.roots === service.bundle)
      at.write('certs/root-cert.pem', pem('one'))
      at.write('certs/key.pem', keyOf('two'))
      at.write('certs/cert-chain.pem', pem('two'))
      await until('the files', () => client.last('default')?.key === keyOf('two') && client.last('ROOTCA')?.roots === pem('one'))
      expect(state().notAfter, 'as it was issued').not.to.equal(undefined)
      // Without them the certificate of the authority is served again.
      rmSync(mounted, { recursive: true })
      await until('the authority’s again', () => client.last('ROOTCA')?.roots === service.bundle && client.last('default')?.key !== keyOf('two'))
      expect(service.calls).to.have.length(1)
    })

    it('are enough at start without the authority, and are still served after they were removed', async () => {
      const service = await at.authority()
      at.write('certs/root-cert.pem', pem('one'))
      at.write('certs/key.pem', keyOf('two'))
      at.write('certs/cert-chain.pem', pem('two'))
      service.answer = () => ({ code: 14, message: 'outage' })
      const state = await at.agent(service, {}, { mounted: at.path('certs') })
      const client = at.envoy(['default'])
      await until('the files', () => client.last('default')?.key === keyOf('two'))
      expect(service.calls).to.have.length(0)
      rmSync(at.path('certs/cert-chain.pem'))
      await until('the authority to be asked', () => state().fault === 'outage')
      const late = at.accepting(['default', 'ROOTCA'])
      await until('what was there', () => late.last('default')?.key === keyOf('two'))
      service.answer = undefined
      await until('the next', () => late.last('default')?.key !== keyOf('two'))
    })

    it('are served individually if one of them is invalid', async () => {
      at.write('certs/root-cert.pem', pem('one'))
      at.write('certs/cert-chain.pem', 'garbled')
      at.write('certs/key.pem', keyOf('two'))
      await at.start({ mounted: at.path('certs') })
      const client = at.envoy(['ROOTCA'])
      await until('the roots', () => client.last('ROOTCA')?.roots === pem('one'))
      expect(at.lines.join('\n')).to.match(/cert-chain.pem: holds no certificate in PEM/)
    })
  })

  describe('written by the agent', () => {
    it('contain what is served, for the own user or for all users, and follow every renewal', async () => {
      const service = await at.authority()
      service.lifeMs = 3000
      for (const [name, isForAll, modes] of [
        ['own', false, [0o700, 0o600, 0o600]],
        ['all', true, [0o755, 0o644, 0o644]],
        ['group', true, [0o2777, 0o640, 0o644]],
      ] as const) {
        const directory = at.path(`out/${name}`)
        // A volume that all containers of a pod have, as an orchestrator makes it.
        if (name === 'group') {
          mkdirSync(directory)
          chmodSync(directory, 0o2777)
        }
        await at.agent(service, {}, { output: { directory, isForAll, passwordFile: undefined } })
        const client = at.envoy(['default'])
        await until('the first', () => client.responses.length === 1)
        const read = (file: string) => at.read(`out/${name}/${file}`)
        expect([read('cert-chain.pem'), read('key.pem'), read('root-cert.pem')]).to.deep.equal([
          client.last('default')?.chain,
          client.last('default')?.key,
          service.bundle,
        ])
        const mode = (file: string) => statSync(join(directory, file)).mode & 0o7777
        expect([mode('.'), mode('key.pem'), mode('cert-chain.pem')]).to.deep.equal(modes)
        const before = read('cert-chain.pem')
        await until('the second', () => read('cert-chain.pem') !== before)
        await at.stopAgents()
      }
    })

    it('are retried if they cannot be written, with log line and metric', async () => {
      const service = await at.authority()
      at.write('out', 'a file')
      await at.agent(service, {}, { output: { directory: at.path('out'), isForAll: false, passwordFile: undefined } })
      const client = at.envoy(['default'])
      await until('the certificate', () => client.responses.length === 1)
      expect(at.lines.filter((line) => line.startsWith('error')).join()).to.match(/the certificate is not written to .*out: .*EEXIST/)
      expect(at.count('num_file_secret_failures_total')).to.equal(1)
      rmSync(at.path('out'))
      await until('the files', () => at.read('out/key.pem') === client.last('default')?.key)
    })

    it('are written again when they are removed, with the key stores, one by one or with their directory', async () => {
      const files = ['cert-chain.pem', 'key.p12', 'key.pem', 'root-cert.pem', 'truststore.p12']
      at.write('password', 'changeit')
      await at.agent(await at.authority(), {}, { output: { directory: at.path('out'), isForAll: false, passwordFile: at.path('password') } })
      const areThere = () => files.every((name) => existsSync(at.path(`out/${name}`)))
      await until('the files', areThere)
      const pair = [at.read('out/key.pem'), at.read('out/cert-chain.pem')]
      for (const removed of ['out/key.pem', 'out/truststore.p12', 'out']) {
        rmSync(at.path(removed), { recursive: true })
        await until(`${removed} again`, areThere)
      }
      expect([at.read('out/key.pem'), at.read('out/cert-chain.pem')]).to.deep.equal(pair)
    })

    it('survive a full disk: old files stay complete, and new ones are written when there is space', async function () {
      const directory = at.path('disk')
      mkdirSync(directory)
      // A small disk requires the permission to mount one.
      if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', directory]).status !== 0) return this.skip()
      try {
        const service = await at.authority()
        service.lifeMs = 2000
        await at.agent(service, {}, { output: { directory, isForAll: false, passwordFile: undefined } })
        const client = at.accepting(['default'])
        await until('the first', () => at.read('disk/cert-chain.pem') !== undefined)
        const first = [at.read('disk/key.pem'), at.read('disk/cert-chain.pem')]
        expect(() => at.write('disk/filler', 'x'.repeat(100_000))).to.throw('ENOSPC')
        await until('the second', () => client.responses.length >= 2)
        await until('that it is logged', () => at.lines.some((line) => /not written to .*ENOSPC/.test(line)))
        expect([at.read('disk/key.pem'), at.read('disk/cert-chain.pem')]).to.deep.equal(first)
        service.lifeMs = 600_000
        rmSync(at.path('disk/filler'))
        await until(
          'the files',
          () => at.read('disk/cert-chain.pem') === client.last('default')?.chain && at.read('disk/key.pem') === client.last('default')?.key,
        )
        expect(readdirSync(directory).sort()).to.deep.equal(['cert-chain.pem', 'key.pem', 'root-cert.pem'])
      } finally {
        await at.stopAgents()
        execFileSync('umount', [directory])
      }
    })

    describe('as key stores', () => {
      const password = 'changeit'
      /** What OpenSSL finds in a key store. */
      const held = (name: string, ...options: string[]) =>
        openssl('pkcs12', '-in', at.path(`out/${name}`), '-passin', `pass:${password}`, '-noenc', ...options)
      const output = () => ({ directory: at.path('out'), isForAll: false, passwordFile: at.path('password') })
      const keyIn = (text: string) => createPrivateKey(text.slice(text.indexOf('-----BEGIN PRIVATE KEY')))

      for (const type of ['rsa', 'ec'] as const) {
        it(`are renewed with the certificate (${type})`, async () => {
          at.write('password', `${password}\n`)
          const service = await at.authority()
          service.lifeMs = 4000
          await at.agent(service, { key: { type, format: 'traditional' } }, { output: output() })
          const agrees = () => {
            const [chain, key] = [at.read('out/cert-chain.pem'), at.read('out/key.pem')]
            if (chain === undefined || key === undefined || !existsSync(at.path('out/truststore.p12'))) return false
            const text = held('key.p12')
            return certificatesIn(text).join() === certificatesIn(chain).join() && keyIn(text).equals(createPrivateKey(key))
          }
          await until('the first', agrees)
          const before = at.read('out/cert-chain.pem')
          await until('the second', () => at.read('out/cert-chain.pem') !== before && agrees())
          expect(certificatesIn(held('truststore.p12', '-nokeys'))).to.deep.equal(certificatesIn(service.bundle))
          expect(readdirSync(at.path('out')).sort()).to.deep.equal(['cert-chain.pem', 'key.p12', 'key.pem', 'root-cert.pem', 'truststore.p12'])
          expect(statSync(at.path('out/key.p12')).mode & 0o777).to.equal(0o600)
        })

        it(`are read by Java: a key with its chain, and trusted roots (${type})`, async function () {
          if (!hasKeytool()) return this.skip()
          at.write('password', password)
          await at.agent(await at.authority(), { key: { type, format: 'pkcs8' } }, { output: output() })
          await until('both', () => existsSync(at.path('out/truststore.p12')))
          const listed = (name: string) => keytool('-list', '-v', '-keystore', at.path(`out/${name}`), '-storepass', password)
          expect(listed('key.p12')).to.match(/contains 1 entry.*Alias name: workload.*Entry type: PrivateKeyEntry\nCertificate chain length: 1/s)
          expect(listed('truststore.p12')).to.match(/contains 1 entry.*Alias name: root-[0-9a-f]{16}.*Entry type: trustedCertEntry/s)
        })
      }

      it('have the modes of the other files', async () => {
        at.write('password', password)
        mkdirSync(at.path('out'))
        chmodSync(at.path('out'), 0o2777)
        await at.agent(await at.authority(), {}, { output: { ...output(), isForAll: true } })
        await until('both', () => existsSync(at.path('out/truststore.p12')))
        expect(['key.p12', 'truststore.p12'].map((name) => statSync(at.path(`out/${name}`)).mode & 0o777)).to.deep.equal([0o640, 0o644])
      })

      it('wait for a password, and keep no other file waiting', async () => {
        await at.agent(await at.authority(), {}, { output: output() })
        await until('the files in PEM', () => at.read('out/root-cert.pem') !== undefined)
        await until('the reason', () => at.lines.some((line) => line.includes('password: there is no such file, which is to hold the password')))
        at.write('password', 'größer')
        await until('the next reason', () => at.lines.some((line) => line.includes('password: character 3 of the password is not printable ASCII')))
        at.write('password', password)
        await until('the key stores', () => existsSync(at.path('out/truststore.p12')))
        expect(at.count('num_file_secret_failures_total')).to.equal(2)
      })
    })
  })
})
