import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { signingCalls } from '../../bench/scenarios/signing-calls.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { Authority } from '../harness/certificates.ts'
import { Launched } from '../harness/launched.ts'
import { until } from '../harness/until.ts'

describe('a killed benchmark', () => {
  it('leaves neither server nor load processes behind', async () => {
    const bench = new Launched([process.execPath, 'bench/run.ts', '--set', 'soak', '--changes', '100000', '--connects', '1000'])
    try {
      // The benchmark itself, the server and two processes of simulated proxies.
      await until('its processes', () => bench.members().length === 4)
      await bench.output.says('round 1 of')
      bench.signal('SIGKILL')
      expect(await bench.ended).to.deep.equal({ code: null, signal: 'SIGKILL' })
      await until('all of them to be gone', () => bench.members().length === 0)
    } finally {
      bench.dispose()
    }
  })
})

describe('the benchmark of signing', () => {
  it('says what a call costs beside a raw stream, with a certificate from files as all sets have it', async () => {
    const authority = new Authority()
    try {
      const { chain, key } = authority.issue('bench', 'spiffe://bench/ns/a/sa/b')
      const request = makeSigningRequest(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, [])
      const { goals, notes } = await signingCalls(1, { cert: chain, key }, request, [readFileSync(chain, 'utf8')])
      expect(notes).to.match(/^2000 calls; [0-9.]+ ms a call with its client, [0-9.]+ ms as a raw stream$/)
      expect(goals?.map(({ what, most, unit }) => [what, most, unit])).to.deep.equal([['CPU of a call more than raw', 0.5, 'ms']])
    } finally {
      authority.dispose()
    }
  })
})
