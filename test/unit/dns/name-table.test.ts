import { expect } from 'chai'
import fc from 'fast-check'
import { NameTable } from '../../../src/dns/name-table.ts'
import { nameTableOf, orchestrated } from '../../harness/name-tables.ts'
import { runs } from '../../harness/seed.ts'

const asker = { domain: 'shop.svc.cluster.local', namespace: 'shop' }
const search = ['shop.svc.cluster.local', 'svc.cluster.local']
const hosts = {
  'cart.shop.svc.cluster.local': orchestrated('cart', 'shop', '10.96.0.1', 'fd00::1'),
  'db.bank.svc.cluster.local': orchestrated('db', 'bank', '10.96.0.2'),
  'api.example.com': { ips: ['192.0.2.1', 'not an address'] },
  'v6.example.com': { ips: ['2001:db8::1'] },
  'nothing.example.com': { ips: ['10.0.0.0/8', ''] },
  '*.wild.example.com': { ips: ['192.0.2.2'] },
  'short.bank': { ips: ['192.0.2.3'] },
  'short.bank.svc.cluster.local': orchestrated('short', 'bank', '10.96.0.3'),
  'same.shop': { ips: ['192.0.2.4'] },
  'very.odd.of.svc.cluster.local': orchestrated('plain', 'shop', '10.96.0.5'),
  'entry.shop.svc.cluster.local': { ips: ['192.0.2.6'], shortname: 'entry', namespace: 'shop' },
  'CAPITAL.example.com.': { ips: ['192.0.2.7'] },
}

describe('the name table of an agent', () => {
  const table = new NameTable(nameTableOf(hosts), asker)
  const ips = (name: string, domains = search) => {
    const found = table.find(name, domains)
    return found && [found.alias, ...found.ipv4.map((bytes) => bytes.join('.')), ...found.ipv6.map((bytes) => Buffer.from(bytes).toString('hex'))]
  }

  it('resolves full names, and short names of services of the orchestrator', () => {
    const cart = [undefined, '10.96.0.1', 'fd000000000000000000000000000001']
    for (const name of ['cart.shop.svc.cluster.local', 'cart.shop.svc', 'cart.shop', 'cart']) expect(ips(name), name).to.deep.equal(cart)
    for (const name of ['db.bank.svc.cluster.local', 'db.bank.svc', 'db.bank']) expect(ips(name), name).to.deep.equal([undefined, '10.96.0.2'])
    for (const name of ['db', 'cart.bank', 'cart.shop.other', 'cart.shop.svc.cluster', 'x.cart.shop.svc.cluster.local'])
      expect(ips(name), name).to.equal(undefined)
  })

  it('resolves other hosts by their full name only, case-insensitively and without a trailing dot', () => {
    expect(ips('api.example.com')).to.deep.equal([undefined, '192.0.2.1'])
    expect(ips('capital.example.com')).to.deep.equal([undefined, '192.0.2.7'])
    for (const name of ['entry', 'entry.shop', 'entry.shop.svc']) expect(ips(name), name).to.equal(undefined)
  })

  it('resolves no host without a valid address, and no wildcard', () => {
    for (const name of ['nothing.example.com', 'a.wild.example.com', '*.wild.example.com', 'example.com']) expect(ips(name), name).to.equal(undefined)
  })

  it('resolves a name with the first search domain as an alias, unless that name is in the table itself', () => {
    expect(ips('api.example.com.shop.svc.cluster.local')).to.deep.equal(['api.example.com', '192.0.2.1'])
    expect(ips('db.bank.shop.svc.cluster.local')).to.deep.equal(['db.bank', '10.96.0.2'])
    expect(ips('cart.shop.svc.cluster.local')?.[0]).to.equal(undefined)
    expect(ips('api.example.com.svc.cluster.local')).to.equal(undefined)
    expect(ips('api.example.com.shop.svc.cluster.local', [])).to.equal(undefined)
    expect(ips('.shop.svc.cluster.local')).to.equal(undefined)
  })

  it("prefers a full name to a short one, and derives short names from the service's name and namespace", () => {
    expect(ips('short.bank')).to.deep.equal([undefined, '192.0.2.3'])
    for (const name of ['very.odd.of.svc.cluster.local', 'plain.shop', 'plain.shop.svc', 'plain'])
      expect(ips(name), name).to.deep.equal([undefined, '10.96.0.5'])
  })

  it('accepts the registry name Kubernetes of other control planes', () => {
    const alias = new NameTable(
      nameTableOf({ 'a.shop.svc.cluster.local': { ...orchestrated('a', 'shop', '10.0.0.1'), registry: 'Kubernetes' } }),
      asker,
    )
    expect(alias.find('a', search)?.ipv4).to.have.length(1)
  })

  it('gives the same answers as a complete list of all names', () => {
    const label = fc.constantFrom('a', 'b', 'shop', 'svc', 'cluster', 'local', 'com')
    const names = fc.array(label, { minLength: 1, maxLength: 6 }).map((labels) => labels.join('.'))
    const entry = fc.oneof(
      names.map((host) => ({ host, info: { ips: ['192.0.2.1'] } })),
      fc.tuple(label, label).map(([short, of]) => ({ host: `${short}.${of}.svc.cluster.local`, info: orchestrated(short, of, '10.0.0.1') })),
    )
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 6 }), fc.array(names, { minLength: 1, maxLength: 8 }), (entries, asked) => {
        const all = Object.fromEntries(entries.map(({ host, info }) => [host, info]))
        const keys = new Map<string, string>()
        for (const [host, { shortname, namespace }] of Object.entries(all) as [string, ReturnType<typeof orchestrated>][])
          if (shortname && namespace)
            for (const key of [`${shortname}.${namespace}`, `${shortname}.${namespace}.svc`, ...(namespace === 'shop' ? [shortname] : [])])
              keys.set(key, host)
        for (const host of Object.keys(all)) keys.set(host, host)
        const made = new NameTable(nameTableOf(all), asker)
        for (const name of asked) {
          const found = made.find(name, search)
          const alias = name.endsWith('.shop.svc.cluster.local') ? name.slice(0, -'.shop.svc.cluster.local'.length) : undefined
          const isAlias = !keys.has(name) && alias !== undefined && keys.has(alias)
          expect(found !== undefined, name).to.equal(keys.has(name) || isAlias)
          expect(found?.alias, name).to.equal(isAlias ? alias : undefined)
        }
      }),
    )
  })

  it('with arbitrary bytes is rejected or can be searched; one that is too large is rejected', () => {
    const good = Buffer.from(nameTableOf(hosts))
    fc.assert(
      fc.property(fc.array(fc.record({ at: fc.nat(good.length - 1), byte: fc.nat(255) }), { minLength: 1, maxLength: 8 }), (changes) => {
        const bytes = Buffer.from(good)
        for (const { at, byte } of changes) bytes[at] = byte
        let broken: NameTable
        try {
          broken = new NameTable(bytes, asker)
        } catch {
          return
        }
        for (const name of [...Object.keys(hosts), 'cart', 'x.y']) broken.find(name, search)
      }),
      { numRuns: runs(500) },
    )
    expect(() => new NameTable(new Uint8Array(65 * 1024 * 1024), asker)).to.throw('a name table of 68157440 bytes')
    expect(new NameTable(new Uint8Array(), asker).find('a', search)).to.equal(undefined)
  })
})
