import { expect } from 'chai'
import type { AuthorityPage } from '../../../protocols/messages/authority-page.ts'
import { blockersText, ledgerText, pageText } from '../../../src/cli/ca-text.ts'

const id = (digit: string) => digit.repeat(64)
const shown = (digit: string, subject: string) => ({
  id: id(digit),
  subject,
  serial: digit,
  notBefore: '2026-01-01T00:00:00.000Z',
  notAfter: '2036-01-01T00:00:00.000Z',
})
const page: AuthorityPage = {
  source: 'own',
  keptIn: '/var/lib/mesh/ca',
  roots: [
    { ...shown('a', 'O=td'), uses: ['signs workloads', 'in answers', 'trusted'], certificate: '' },
    { ...shown('b', 'O=td'), uses: ['signs servers', 'in answers', 'trusted'], certificate: '' },
  ],
  intermediates: { workloads: [], serving: [shown('c', 'O=td')] },
  signing: { certificate: '', chain: '' },
  rotation: {
    stage: 'trust-both',
    next: 'sign-with-new',
    since: '2026-02-01T00:00:00.000Z',
    blocking: 2,
    blockers: [{ identity: 'spiffe://td/ns/a/sa/b', proxies: ['n1'], why: '', reason: 'has 1 of 1 proxies late', until: '2026-02-02T00:00:00.000Z' }],
    plaintextProxies: 1,
    plaintext: ['n2'],
  },
  serving: [{ serial: '0d', root: id('b'), issuedAt: '', notAfter: '2026-05-01T00:00:00.000Z' }],
  holders: 3,
}

describe('the output of the command `ca`', () => {
  it('shows roots, rotation, intermediates and serving certificates of the authority', () => {
    expect(pageText(page).split('\n')).to.deep.equal([
      'Certificate authority: a root of its own, state in /var/lib/mesh/ca',
      'Rotation: trust-both since 2026-02-01T00:00:00.000Z',
      '',
      'ROOT              SUBJECT  NOT AFTER                 USE',
      'aaaaaaaaaaaaaaaa  O=td     2036-01-01T00:00:00.000Z  signs workloads, in answers, trusted',
      'bbbbbbbbbbbbbbbb  O=td     2036-01-01T00:00:00.000Z  signs servers, in answers, trusted',
      '',
      'BETWEEN           SUBJECT  NOT AFTER',
      'cccccccccccccccc  O=td     2036-01-01T00:00:00.000Z',
      '',
      'SERVING CERTIFICATE  ROOT              NOT AFTER',
      '0d                   bbbbbbbbbbbbbbbb  2026-05-01T00:00:00.000Z',
      '',
      '3 workloads hold a certificate; 1 proxies are on the plaintext port.',
      '2 holders block the rotation: see "ca rotate --dry-run".',
    ])
  })

  it('lists which identities block the next stage, until when, and proxies on the plaintext port', () => {
    expect(blockersText(page).split('\n')).to.deep.equal([
      'Stage trust-both: 2 are not ready for sign-with-new:',
      '  spiffe://td/ns/a/sa/b has 1 of 1 proxies late; until 2026-02-02T00:00:00.000Z at the latest',
      '    n1',
      '  and 1 more',
      'On the plaintext port, without certificates, not waited for: 1 proxies:',
      '  n2',
    ])
    const ready = { ...page, rotation: { ...page.rotation, blocking: 0, blockers: [], plaintextProxies: 0, plaintext: [] } }
    expect(blockersText(ready)).to.equal('Stage trust-both: all holders are ready for sign-with-new.')
  })

  it('lists the ledger of certificates by identity and address', () => {
    const certificate = { address: '10.0.0.1', serial: '0a', root: id('a'), issuedAt: '', notAfter: '2026-02-02T00:00:00.000Z' }
    const rows = [
      { identity: 'spiffe://td/ns/a/sa/b', proxies: ['n1'], certificates: [certificate] },
      { identity: 'spiffe://td/ns/a/sa/c', proxies: [], certificates: [] },
    ]
    expect(ledgerText(rows).split('\n')).to.deep.equal([
      'IDENTITY               ADDRESS   SERIAL  ROOT              NOT AFTER                 PROXIES',
      'spiffe://td/ns/a/sa/b  10.0.0.1  0a      aaaaaaaaaaaaaaaa  2026-02-02T00:00:00.000Z  1',
      'spiffe://td/ns/a/sa/c  -         -       -                 -                         0',
    ])
  })
})
