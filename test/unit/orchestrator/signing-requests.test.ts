/** Requests to a signer of the orchestrator against a stand-in for its API: bounds, ends and retries (docs/certificates.md, E3, E6). */
import { expect } from 'chai'
import { ApiFailure } from '../../../actors/discovery/cluster/cluster-api.ts'
import { SigningRequests } from '../../../actors/discovery/cluster/signing-requests.ts'
import { MetricRegistry } from '../../../actors/runtime/metrics.ts'
import { until } from '../../harness/until.ts'

interface Object {
  readonly metadata: { readonly name: string }
  readonly status: { conditions: { type: string; reason?: string; message?: string }[]; certificate?: string }
}

/** The API of signing requests, without a signer. `fails` throws for a call that is to fail. */
class StandIn {
  readonly objects = new Map<string, Object>()
  readonly calls: string[] = []
  fails: (verb: string) => void = () => undefined
  readonly lines: string[] = []

  make(): SigningRequests {
    const call = async (name: { verb: string; object?: string }, _: unknown, operation: (api: unknown) => unknown) => {
      this.calls.push(name.verb)
      this.fails(name.verb)
      return operation(this.#api)
    }
    const say = (line: string) => void this.lines.push(line)
    const log = () => ({ debug: say, info: say, warn: say, error: say })
    return new SigningRequests({ api: { call } as never, signer: 'example.com/mesh', domain: 'mesh.io', log, metrics: new MetricRegistry() })
  }

  readonly #api = {
    createCertificateSigningRequest: ({ body }: { body: Object }) => {
      const made = { ...body, status: { conditions: [] } }
      this.objects.set(body.metadata.name, made)
      return made
    },
    replaceCertificateSigningRequestApproval: ({ name, body }: { name: string; body: Object }) => this.objects.set(name, body),
    readCertificateSigningRequest: ({ name }: { name: string }) => this.objects.get(name),
    listCertificateSigningRequest: () => ({ items: [...this.objects.values()] }),
    deleteCertificateSigningRequest: ({ name }: { name: string }) => this.objects.delete(name),
  }
}

const order = { use: 'workload', csr: 'csr', lifeMs: 0, client: 'cart' } as const
const failure = (code: number) => new ApiFailure('no', code, '')

describe('requests to a signer of the orchestrator', () => {
  let api: StandIn
  let requests: SigningRequests
  const isEmpty = () => until('no object', () => api.objects.size === 0)
  beforeEach(() => {
    api = new StandIn()
    requests = api.make()
  })

  it('end at the deadline and when nobody waits any more, and leave no object', async () => {
    const late = await requests.sign(order, { signal: new AbortController().signal, restMs: () => 300 })
    expect(late.outcome).to.equal('late')
    await isEmpty()
    const leaving = new AbortController()
    const left = requests.sign(order, { signal: leaving.signal, restMs: () => 60_000 })
    await until('the object', () => api.objects.size === 1)
    leaving.abort()
    expect((await left).outcome).to.equal('late')
    await isEmpty()
  })

  it('are made again after a failure that passes, and what may have been made is removed', async () => {
    let failures = 0
    api.fails = (verb) => {
      if (verb === 'create' && failures++ < 2) throw failure(503)
    }
    const answer = requests.sign(order, { signal: new AbortController().signal, restMs: () => 60_000 })
    await until('the approval', () => [...api.objects.values()].some(({ status }) => status.conditions.some(({ type }) => type === 'Approved')))
    for (const object of api.objects.values()) object.status.certificate = Buffer.from('signed').toString('base64')
    expect(await answer).to.deep.equal({ outcome: 'signed', certificate: 'signed' })
    await isEmpty()
    await until('all names to be removed', () => api.calls.filter((verb) => verb === 'delete').length === 3)
  })

  it('are refused when somebody removes or denies them, and not made where that is forbidden', async () => {
    const asking = { signal: new AbortController().signal, restMs: () => 60_000 }
    const removed = requests.sign(order, asking)
    await until('the object', () => api.objects.size === 1)
    api.objects.clear()
    expect((await removed).outcome).to.equal('refused')
    api.fails = (verb) => {
      if (verb === 'update') throw failure(403)
    }
    const denied = requests.sign(order, asking)
    await until('the object', () => api.objects.size === 1)
    for (const { status } of api.objects.values()) status.conditions.push({ type: 'Denied', reason: 'Policy', message: 'no' })
    expect(await denied).to.deep.equal({ outcome: 'refused', reason: 'an approver has denied the request: Policy: no' })
    api.fails = (verb) => {
      if (verb === 'create') throw failure(403)
    }
    expect((await requests.sign(order, asking)).outcome).to.equal('away')
    expect(api.lines.filter((line) => line.includes('are not approved by this process'))).to.have.length(1)
  })

  it('of one caller wait for each other, and those of others do not', async () => {
    const asking = { signal: new AbortController().signal, restMs: () => 60_000 }
    const all = [...Array.from({ length: 6 }, () => requests.sign(order, asking)), requests.sign({ ...order, client: 'web' }, asking)]
    await until('those that may be open', () => api.objects.size === 5)
    const made = new Set<string>()
    await until('all to be signed', () => {
      for (const [name, { status }] of api.objects) {
        made.add(name)
        status.certificate = Buffer.from('x').toString('base64')
      }
      return made.size === 7
    })
    expect((await Promise.all(all)).every(({ outcome }) => outcome === 'signed')).to.equal(true)
  })
})
