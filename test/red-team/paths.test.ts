import { expect } from 'chai'
import { policyDocument } from '../harness/policies.ts'
import { describeAttacks, type Place } from '../harness/red-team.ts'
import { until } from '../harness/until.ts'

const policy = (action: string, operation: string) =>
  policyDocument('AuthorizationPolicy', 'paths', `{action: ${action}, rules: [{to: [{operation: ${operation}}]}]}`)

const statusOf = async (place: Place, path: string) =>
  (await place.raw(Buffer.from(`GET ${path} HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n`))).status

/** Returns the paths that got another status than the expected one. Envoy may answer 400 to any of them. */
async function wrong(place: Place, paths: readonly string[], status: number): Promise<string[]> {
  const found: string[] = []
  for (const path of paths) {
    const seen = await statusOf(place, path)
    if (seen !== status && seen !== 400) found.push(`${path}: ${seen}`)
  }
  return found
}

/** Characters that a path may contain plain or escaped, or escaped only. */
const characters = [...'@+;\'|!$&()*,:="<>^`{}~[]', ' ', 'é', '産']

/** Returns the percent-encodings of a character: in lower, upper and mixed case. */
function escapes(character: string): string[] {
  const escaped = [...Buffer.from(character)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
  const mixed = escaped.map((each, index) => (index % 2 === 0 ? each.toUpperCase() : each))
  return [escaped.join(''), escaped.join('').toUpperCase(), mixed.join('')]
}

const yamlList = (values: readonly string[]) => `[${values.map((value) => JSON.stringify(value)).join(', ')}]`

describeAttacks('paths', (place) => {
  it('reserved and non-ASCII characters match plain and percent-encoded, in upper and lower case', async () => {
    const all = characters.flatMap((character) => [character, ...escapes(character)])
    for (const form of [(character: string) => character, (character: string) => escapes(character)[0] as string]) {
      const values = characters.map((character) => `/a${form(character)}b`)
      await place.enforce(policy('DENY', `{paths: ${yamlList(values)}}`))
      expect(
        await wrong(
          place,
          all.map((each) => `/a${each}b`),
          403,
        ),
        'denied',
      ).to.deep.equal([])
      expect(
        await wrong(
          place,
          all.map((each) => `/A${each}b`),
          200,
        ),
        'another case',
      ).to.deep.equal([])
      expect(await wrong(place, ['/ab', '/a%25b', '/a%2540b', '/a/b', '/a%40c', '/a@b/c'], 200), 'other paths').to.deep.equal([])
      await place.enforce(policy('ALLOW', `{notPaths: ${yamlList(values.map((value) => `${value}*`))}}`))
      expect(
        await wrong(
          place,
          all.map((each) => `/a${each}b/c`),
          403,
        ),
        'prefixes, the other way round',
      ).to.deep.equal([])
      expect(await wrong(place, ['/ab', '/x'], 200)).to.deep.equal([])
      await place.enforce(policy('ALLOW', `{paths: ${yamlList(values.map((value) => `*${value}`))}}`))
      expect(await wrong(place, ['/x/a@b', '/x/a%40b', '/a%7cb', '/a%C3%a9b'], 200), 'suffixes that let in').to.deep.equal([])
      expect(await wrong(place, ['/x/a@b/c', '/ab', '/a%25b'], 403)).to.deep.equal([])
    }
  })

  it('paths with ambiguous dot segments or overlong encodings match every DENY rule and no ALLOW rule', async () => {
    const odd = [
      '/open/..;/admin',
      '/open/..;x=1/admin',
      '/open/..%3b/admin',
      '/open/%c0%ae%c0%ae/admin',
      '/open/%C1%A1dmin',
      '/open/%e0%80%af',
      '/open%c0%afadmin',
    ]
    await place.enforce(policy('DENY', "{paths: ['/admin']}"))
    expect(await wrong(place, odd, 403)).to.deep.equal([])
    expect(await wrong(place, ['/open', '/open;x=1/a', '/open/%C3%A9', '/open/a..;b', '/open/%252e%252e/admin'], 200)).to.deep.equal([])
    await place.enforce(policy('ALLOW', "{paths: ['/open/*']}"))
    expect(await wrong(place, odd, 403)).to.deep.equal([])
    expect(await wrong(place, ['/open/a', '/open/a;x=1', '/open/%C3%A9'], 200)).to.deep.equal([])
  })

  it('dot segments, repeated slashes, escapes and queries do not bypass a DENY rule', async () => {
    await place.enforce(policy('DENY', "{paths: ['/admin/panel', '/']}"))
    const same = [
      '/admin/panel',
      '//admin/panel',
      '/x/../admin/panel',
      '/admin/./panel',
      '/admin%2fpanel',
      '/admin%5Cpanel',
      '/admin\\panel',
      '/%61dmin/p%61nel',
      '/admin/panel?x',
      '/admin/%2e/panel',
      '/admin/x/%2E%2e/panel',
    ]
    expect(await wrong(place, [...same, '/', '//', '///', '/./', '/x/..', '/?x', '/%2f'], 403)).to.deep.equal([])
    expect(
      await wrong(place, ['/admin%252fpanel', '/x?/admin/panel', '/admin/panel;x=1', '/admin/panel%3Fx', '/admin/panel%23', '/x%00'], 200),
    ).to.deep.equal([])
    expect(await statusOf(place, '/x#/admin/panel')).to.equal(400)
  })

  it('a DENY condition on the header :path matches the normalized path', async () => {
    const when = [{ key: 'request.headers[:path]', values: ['/admin', '/a@b*'] }]
    await place.enforce(policyDocument('AuthorizationPolicy', 'paths', JSON.stringify({ action: 'DENY', rules: [{ when }] })))
    expect(await wrong(place, ['/admin', '/admin?x', '/%61dmin', '//admin', '/a%40b', '/a@b?x', '/x/..;/admin'], 403)).to.deep.equal([])
    expect(await wrong(place, ['/', '/adminx', '/x?/admin'], 200)).to.deep.equal([])
  })

  it('prefix and suffix patterns do not match within a percent-encoding', async () => {
    await place.enforce(policy('ALLOW', "{paths: ['*0b', '*ad', '/x%40*']}"))
    expect(await wrong(place, ['/0b', '/a/70b', '/bad', '/x@', '/x%40y'], 200)).to.deep.equal([])
    expect(await wrong(place, ['/a%40b', '/a%0b', '/a%ad', '/a%AD', '/a%2ad', '/x%4', '/x%4f'], 403)).to.deep.equal([])
  })

  it('path templates of DENY rules match any segment text, and those of ALLOW rules no ambiguous segments', async () => {
    await place.enforce(policy('DENY', "{paths: ['/t/{*}/end', '/r/{**}', '/s/{*}@x']}".replace("'/s/{*}@x'", "'/s@/{*}'")))
    const denied = [
      '/t/a/end',
      '/t/a=b/end',
      '/t/a%3Db/end',
      '/t/[a]/end',
      '/t/*/end',
      '/t/é/end'.replace('é', '%C3%A9'),
      '/r/',
      '/r/a',
      '/r/a/b=c',
      '/s@/a',
      '/s%40/a',
      '/t/a/end?x',
    ]
    expect(await wrong(place, denied, 403)).to.deep.equal([])
    expect(await wrong(place, ['/t/end', '/t/a/b/end', '/t/a=b/c/end', '/t/a/End', '/r', '/s@/a/b'], 200)).to.deep.equal([])
    await place.enforce(policy('ALLOW', "{paths: ['/t/{*}/end', '/r/{**}/x']}"))
    expect(await wrong(place, ['/t/a/end', '/t/a;x/end', '/r/a/b/x'], 200)).to.deep.equal([])
    expect(await wrong(place, ['/t/a/b/end', '/t//end', '/t/x%2f..%2f../admin', '/r/a/y', '/t/..;/end'], 403)).to.deep.equal([])
  })

  it('a path that can never match makes its policy invalid: the policy denies, and is reported with the field', async () => {
    const never = ['/a//b', '/x?y=1', '/x#y', '/a/../b', '/a/./b*', 'admin', 'admin*', '*//b', '/a%4*', '/a%00', '/a/{*}.txt', '/{**}/{*}']
    await place.enforce()
    try {
      for (const [index, value] of never.entries()) {
        const paths = ['/fine', value]
        const spec = { action: 'DENY', rules: [{ to: [{ operation: { paths } }] }] }
        place.service.write('never.yaml', policyDocument('AuthorizationPolicy', `never-${index}`, JSON.stringify(spec)))
        await until(`${value} to be reported`, async () => {
          const { considered } = await place.service.debug<{ considered: { policy: string; because: string }[] }>(
            `authz?proxyID=${place.id}.shop&path=/`,
          )
          return considered.some(({ policy, because }) => policy.endsWith(`-${index}`) && because.includes('spec.rules[0].to[0].operation.paths[1]'))
        })
        await until(`${value} to deny`, async () => (await statusOf(place, '/somewhere')) === 403)
      }
    } finally {
      place.service.remove('never.yaml')
    }
    await until('it to be gone', async () => (await statusOf(place, '/somewhere')) === 200)
    const faults = JSON.stringify(await place.service.debug('push_status'))
    expect(faults).not.to.include('never matches')
  })
})
