/** What the log says of resources that cannot be followed (docs/operation.md, C4). */
import { expect } from 'chai'
import { type FollowFailure, FollowTroubles } from '../../../actors/discovery/sources/orchestrator/follow-troubles.ts'
import type { ScopedLogger } from '../../../actors/runtime/logger.ts'

class Subject {
  readonly lines: string[] = []
  now = 0
  readonly troubles = new FollowTroubles(
    'c1',
    { error: (line: string) => this.lines.push(`error ${line}`), info: (line: string) => this.lines.push(`info ${line}`) } as unknown as ScopedLogger,
    () => this.now,
  )

  fails(name: string, reason: string, code?: number, isListed = false, consequence = ''): void {
    const refusal: FollowFailure['refusal'] = code === undefined ? undefined : { code, reason, askedMs: 0 }
    this.troubles.failed({ path: `/${name}`, shown: name, what: `list of ${name} failed`, refusal, reason, consequence, isListed })
  }

  recovers(name: string): void {
    this.troubles.recovered(`/${name}`, name)
  }

  get said(): string[] {
    return this.lines.splice(0)
  }
}

describe('resources that cannot be followed', () => {
  it('of a server that does not answer are told with one line, and with one when all of them are followed again', () => {
    const subject = new Subject()
    for (const name of ['pods', 'nodes', 'pods']) subject.fails(name, 'nothing came for 10 s')
    expect(subject.said).to.deep.equal(['error cluster c1: list of pods failed: nothing came for 10 s'])
    expect(subject.troubles.texts).to.have.length(2)
    expect(subject.troubles.reasons).to.deep.equal(['list of pods failed: nothing came for 10 s'])
    subject.recovers('pods')
    expect(subject.said).to.deep.equal([])
    subject.recovers('nodes')
    expect(subject.said).to.deep.equal(['info cluster c1: pods, nodes are followed again'])
    expect(subject.troubles.texts).to.deep.equal([])
    subject.fails('pods', 'nothing came for 10 s')
    expect(subject.said).to.have.length(1)
  })

  it('of a server that does not answer are told with another line where something else follows', () => {
    const subject = new Subject()
    for (const name of ['nodes', 'leases']) subject.fails(name, 'nothing came for 10 s')
    for (const name of ['pods', 'services']) subject.fails(name, 'nothing came for 10 s', undefined, false, 'the service is not ready')
    expect(subject.said).to.deep.equal([
      'error cluster c1: list of nodes failed: nothing came for 10 s',
      'error cluster c1: list of pods failed: nothing came for 10 s; the service is not ready',
    ])
    for (const name of ['nodes', 'leases', 'pods', 'services']) subject.recovers(name)
    expect(subject.said).to.deep.equal(['info cluster c1: nodes, leases are followed again', 'info cluster c1: pods, services are followed again'])
  })

  it('are told each with its own line where the server refuses them', () => {
    const subject = new Subject()
    for (const name of ['pods', 'nodes', 'pods']) subject.fails(name, 'forbidden', 403)
    expect(subject.said).to.deep.equal(['pods', 'nodes'].map((name) => `error cluster c1: list of ${name} failed: forbidden`))
    subject.fails('pods', 'gone', undefined)
    subject.recovers('pods')
    subject.recovers('nodes')
    expect(subject.said).to.deep.equal([
      'error cluster c1: list of pods failed: gone',
      'info cluster c1: pods are followed again',
      'info cluster c1: nodes are followed again',
    ])
  })

  it('whose definitions are new are an expected wait for a while, which is told once', () => {
    const subject = new Subject()
    for (const name of ['gateways', 'sidecars', 'gateways']) subject.fails(name, 'storage is (re)initializing', 429)
    expect(subject.said).to.deep.equal([
      'info cluster c1: the API server does not list gateways, and may be others, yet: storage is (re)initializing; it is asked again',
    ])
    subject.recovers('sidecars')
    expect(subject.said).to.deep.equal([])
    subject.now = 30_000
    subject.fails('gateways', 'storage is (re)initializing', 429)
    subject.fails('gateways', 'storage is (re)initializing', 429)
    expect(subject.said).to.deep.equal(['error cluster c1: list of gateways failed: storage is (re)initializing'])
    subject.recovers('gateways')
    expect(subject.said).to.deep.equal(['info cluster c1: gateways are followed again'])
  })

  it('that were listed before are no expected wait', () => {
    const subject = new Subject()
    subject.fails('gateways', 'overloaded', 429, true)
    expect(subject.said).to.deep.equal(['error cluster c1: list of gateways failed: overloaded'])
  })
})
