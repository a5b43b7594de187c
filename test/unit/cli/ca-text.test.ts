import { expect } from 'chai'
import type { AuthorityStatus } from '../../../protocols/messages/authority-status.ts'
import { authorityText, blockersText, distrustText, ledgerText } from '../../../src/cli/ca-text.ts'
import { unknownQuestion } from '../../../src/model/replica-silence.ts'

const id = (digit: string) => digit.repeat(64)
const shown = (digit: string, subject: string) => ({
  id: id(digit),
  subject,
  serial: digit,
  notBefore: '2026-01-01T00:00:00.000Z',
  notAfter: '2036-01-01T00:00:00.000Z',
})
const status: AuthorityStatus = {
  source: 'own',
  keptIn: '/var/lib/mesh/ca',
  roots: [
    { ...shown('a', 'O=td'), uses: ['signs workload certificates', 'sent to workloads', 'accepted from clients'], certificate: '' },
    { ...shown('b', 'O=td'), uses: ['signs serving certificates', 'sent to workloads', 'accepted from clients'], certificate: '' },
  ],
  intermediates: { workloads: [], serving: [shown('c', 'O=td')] },
  signing: { certificate: '', chain: '' },
  rotation: {
    stage: 'trust-both',
    next: 'sign-with-new',
    since: '2026-02-01T00:00:00.000Z',
    blocking: 2,
    blockers: [{ identity: 'spiffe://td/ns/a/sa/b', proxies: ['n1'], why: '', reason: 'is late', until: '2026-02-02T00:00:00.000Z' }],
    plaintextProxies: 1,
    plaintext: ['n2'],
    waits: undefined,
  },
  clock: { verdict: 'agreed', wall: '2026-02-01T00:00:00.000Z', believed: '2026-02-01T00:00:00.000Z' },
  keptKeys: [],
  faults: [],
  serving: [
    { serial: '0d', root: id('b'), issuedAt: '', notAfter: '2026-05-01T00:00:00.000Z', isServed: true },
    { serial: '0e', root: id('b'), issuedAt: '', notAfter: '2026-04-01T00:00:00.000Z', isServed: false },
  ],
  holders: 3,
  replicas: [],
}

describe('the output of the command `ca`', () => {
  it('shows roots, rotation, intermediates and serving certificates of the authority', () => {
    expect(authorityText(status).split('\n')).to.deep.equal([
      'Authority: own root; state is kept in /var/lib/mesh/ca',
      'Rotation stage: trust-both since 2026-02-01T00:00:00.000Z; next stage: sign-with-new',
      'Clock: agreed',
      '',
      'ROOT              SUBJECT  BEGINS                    EXPIRES                   USES',
      'aaaaaaaaaaaaaaaa  O=td     2026-01-01T00:00:00.000Z  2036-01-01T00:00:00.000Z  signs workload certificates, sent to workloads, accepted from clients',
      'bbbbbbbbbbbbbbbb  O=td     2026-01-01T00:00:00.000Z  2036-01-01T00:00:00.000Z  signs serving certificates, sent to workloads, accepted from clients',
      '',
      'INTERMEDIATE      SUBJECT  EXPIRES',
      'cccccccccccccccc  O=td     2036-01-01T00:00:00.000Z',
      '',
      'SERVING CERTIFICATE  ROOT              EXPIRES',
      '0d                   bbbbbbbbbbbbbbbb  2026-05-01T00:00:00.000Z',
      '',
      'Serving certificates that are not in use and have not expired: 1',
      'Workload certificates that are held: 3 ("pilot-discovery ca ledger" lists them)',
      'Proxies on the plaintext port, without a certificate: 1',
      'Blockers of the next stage: 2 ("pilot-discovery ca rotate --dry-run" lists them)',
    ])
    const plugged = authorityText({ ...status, source: 'plugged-in' })
    expect(plugged).to.match(/^Authority: plugged in \(ROOT_CA_DIR or Secret cacerts\); .*\nRotation stage: none, a plugged-in root is not rotated\n/)
    expect(plugged).not.to.include('next stage')
  })

  it('shows why no stage begins, what is not valid, and which keys are kept', () => {
    const clock = { verdict: 'disputed', wall: '2037-01-01T00:00:00.000Z', believed: '2026-02-01T00:00:00.000Z' } as const
    const shownPage = {
      ...status,
      rotation: { ...status.rotation, waits: 'the clock' },
      clock,
      faults: ['root a has expired'],
      keptKeys: [shown('d', 'O=td')],
    }
    const text = authorityText(shownPage)
    expect(text).to.include(
      'No stage begins: the clock\nClock: disputed (it shows 2037-01-01T00:00:00.000Z, recorded is 2026-02-01T00:00:00.000Z)\nNot valid: root a has expired\n',
    )
    expect(text).to.include('\nKEPT KEY          SUBJECT  EXPIRES\ndddddddddddddddd  O=td     2036')
    expect(blockersText(shownPage)).to.include('next stage: sign-with-new\nNo stage begins: the clock\nBlockers')
  })

  it('lists who is cut off by a root that is distrusted, or would be', () => {
    const holder = { identity: 'spiffe://td/ns/a/sa/b', addresses: ['10.0.0.1', '10.0.0.2'], proxies: [] }
    const answer = { root: id('a'), subject: 'O=td', isDry: true, identities: 2, holders: [holder], replicas: [] }
    expect(distrustText(answer).split('\n')).to.deep.equal([
      'Root aaaaaaaaaaaaaaaa (O=td) would neither be sent to workloads nor accepted from clients any more.',
      'Workloads stop trusting it in new connections within seconds, as their agents are told; an agent that is not connected, when it is.',
      'Identities with certificates of it, which would be cut off until they get others: 2',
      'IDENTITY               ADDRESSES           CONNECTED PROXIES',
      'spiffe://td/ns/a/sa/b  10.0.0.1, 10.0.0.2  -',
      'and 1 more',
    ])
    expect(distrustText({ ...answer, isDry: false, identities: 0, holders: [] }).split('\n')).to.deep.equal([
      'Root aaaaaaaaaaaaaaaa (O=td) is neither sent to workloads nor accepted from clients any more.',
      'Workloads stop trusting it in new connections within seconds, as their agents are told; an agent that is not connected, when it is.',
      'Identities with certificates of it, which are cut off until they get others: 0',
    ])
  })

  it('lists which identities block the next stage, until when, and proxies on the plaintext port', () => {
    expect(blockersText(status).split('\n')).to.deep.equal([
      'Rotation stage: trust-both; next stage: sign-with-new',
      'Blockers of the next stage: 2',
      '  spiffe://td/ns/a/sa/b is late; blocks until 2026-02-02T00:00:00.000Z at the latest',
      '    n1',
      '  and 1 more',
      'Proxies on the plaintext port, without a certificate; they do not block: 1',
      '  n2',
    ])
    const ready = { ...status, rotation: { ...status.rotation, blocking: 0, blockers: [], plaintextProxies: 0, plaintext: [] } }
    expect(blockersText(ready).split('\n')).to.deep.equal([
      'Rotation stage: trust-both; next stage: sign-with-new',
      'Blockers of the next stage: 0',
      'Proxies on the plaintext port, without a certificate; they do not block: 0',
    ])
  })

  it('lists the ledger of certificates by identity and address', () => {
    const certificate = { address: '10.0.0.1', serial: '0a', root: id('a'), issuedAt: '', notAfter: '2026-02-02T00:00:00.000Z' }
    const rows = [
      { identity: 'spiffe://td/ns/a/sa/b', proxies: ['n1'], certificates: [certificate] },
      { identity: 'spiffe://td/ns/a/sa/c', proxies: [], certificates: [] },
    ]
    expect(ledgerText({ identities: rows, replicas: [] }).split('\n')).to.deep.equal([
      'IDENTITY               CONNECTED PROXIES  ADDRESS   CERTIFICATE  ROOT              EXPIRES',
      'spiffe://td/ns/a/sa/b  1                  10.0.0.1  0a           aaaaaaaaaaaaaaaa  2026-02-02T00:00:00.000Z',
      'spiffe://td/ns/a/sa/c  0                  -         -            -                 -',
    ])
  })

  it('names a replica that has not told which proxies are connected to it', () => {
    const replicas = [
      { name: 'meshd-0', answered: true, reason: '' },
      { name: 'meshd-1', answered: false, reason: 'it stands still' },
      { name: 'meshd-2', answered: false, reason: unknownQuestion },
    ]
    const lines = [
      'Replica meshd-1 has not answered, so its proxies are not known to be connected: it stands still',
      'Replica meshd-2 is of an older release, so its proxies are not known to be connected: it does not know this question',
    ]
    const texts = [
      authorityText({ ...status, replicas }),
      blockersText({ ...status, replicas }),
      ledgerText({ identities: [], replicas }),
      distrustText({ root: id('a'), subject: 'O=td', isDry: true, identities: 0, holders: [], replicas }),
    ]
    for (const text of texts) expect(text.split('\n').filter((one) => one.startsWith('Replica'))).to.deep.equal(lines)
  })
})
