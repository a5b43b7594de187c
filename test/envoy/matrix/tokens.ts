/** The tokens that rows refer to by name: valid ones, and every kind of invalid one. */
import { createHmac } from 'node:crypto'
import type { Issuer } from '../../harness/issuer.ts'

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Returns all tokens by name. `strangers` are issuers whose keys Envoy does not have; `forger` uses the name of the first issuer. */
export async function makeTokens(
  one: Issuer,
  two: Issuer,
  strangers: { readonly forger: Issuer; readonly unknown: Issuer; readonly unserved: Issuer },
): Promise<Record<string, string>> {
  const now = Math.floor(Date.now() / 1000)
  const good = await one.token()
  const [head = '', body = '', signature = ''] = good.split('.')
  const claims = { iss: one.name, sub: 'subject', exp: now + 3600 }
  const confused = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  const of = (extra: object) => one.token(extra as Record<string, unknown>)
  return {
    one: good,
    two: await two.token(),
    unknown: await strangers.unknown.token(),
    unserved: await strangers.unserved.token(),
    forged: await strangers.forger.token(),
    expired: await of({ exp: now - 3600 }),
    justExpired: await of({ exp: now - 20 }),
    early: await of({ nbf: now + 3600 }),
    almostEarly: await of({ nbf: now + 20 }),
    none: `${encode({ alg: 'none', typ: 'JWT' })}.${encode(claims)}.`,
    otherKid: await one.token({}, { kid: 'another' }),
    noKid: await one.token({}, { kid: undefined as never }),
    algConfusion: `${confused}.${createHmac('sha256', one.jwks).update(confused).digest('base64url')}`,
    garbage: 'garbage',
    twoParts: `${head}.${body}`,
    tampered: `${head}.${encode({ ...claims, sub: 'root' })}.${signature}`,
    noIssuer: await of({ iss: undefined }),
    noSubject: await of({ sub: undefined }),
    large: await of({ filler: 'x'.repeat(20_000) }),
    huge: await of({ filler: 'x'.repeat(70_000) }),
    oneOther: await of({ sub: 'other' }),
    oneSlash: await of({ sub: 'a/b' }),
    oneX: await of({ sub: 'xyz' }),
    subjectLead: await of({ sub: 'lead' }),
    subjectWords: await of({ sub: 'team lead' }),
    twoOther: await two.token({ sub: 'other' }),
    likeOne: await one.token({ iss: 'https://oneXexample', sub: 'xyz' }),
    blocked: await of({ sub: 'blocked' }),
    twoBlocked: await two.token({ sub: 'blocked' }),
    audShop: await of({ aud: 'shop' }),
    audList: await of({ aud: ['other', 'shop'] }),
    audUrl: await of({ aud: 'https://api.example/' }),
    audOther: await of({ aud: 'other' }),
    audShopApp: await of({ aud: 'shop', azp: 'app' }),
    audListApp: await of({ aud: ['x', 'shop'], azp: 'app' }),
    staffTrue: await of({ staff: true }),
    staffFalse: await of({ staff: false }),
    staffSeven: await of({ staff: 7 }),
    staffList: await of({ staff: ['no', true] }),
    staffNested: await of({ staff: [['7']] }),
    staffText: await of({ staff: 'true' }),
    staffNull: await of({ staff: null }),
    groupsList: await of({ groups: ['users', 'admins'] }),
    groupsTeam: await of({ groups: ['team-red'] }),
    groupsOther: await of({ groups: ['users'] }),
    groupsText: await of({ groups: 'admins' }),
    groupsWords: await of({ groups: 'users admins' }),
    groupsNumber: await of({ groups: 7 }),
    groupsEmpty: await of({ groups: [] }),
    groupsObject: await of({ groups: { admins: true } }),
    groupsGuests: await of({ groups: ['users', 'guests'] }),
    nestedOwner: await of({ realm: { roles: ['owner'] } }),
    nestedOther: await of({ realm: { roles: ['reader'] } }),
    nestedText: await of({ realm: { roles: 'owner' } }),
    scopeList: await of({ scope: ['read', 'write'] }),
    scopeWords: await of({ scope: 'read write' }),
    scopeOther: await of({ scope: 'read' }),
    scopeLike: await of({ scope: 'read overwrite' }),
    titleLead: await of({ title: 'team lead' }),
    titleOther: await of({ title: 'lead team' }),
    urlClaim: await of({ 'https://example.com/role': 'x' }),
    blockedAdmin: await of({ sub: 'blocked', groups: ['admins'] }),
  }
}
