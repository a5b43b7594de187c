import { expect } from 'chai'
import type { ClusterApi } from '../../../actors/discovery/cluster/cluster-api.ts'
import type { ResourceEvents } from '../../../actors/discovery/cluster/followed-resource.ts'
import { RegistriesNamespace } from '../../../actors/discovery/cluster/registries-namespace.ts'
import type { ScopedLogger } from '../../../actors/runtime/logger.ts'

/** The namespace as it is followed, what it logs, and what tells it of the server. `secrets`: whether it has remote secrets. */
function followed(secrets: { hasSome: boolean | undefined }) {
  const lines: string[] = []
  const say = (level: string) => (line: string) => void lines.push(`${level} ${line}`)
  const known: boolean[] = []
  const told: ResourceEvents<unknown>[] = []
  const api = {
    followed(_: unknown, each: ResourceEvents<unknown>) {
      told.push(each)
      return { start() {}, close() {} }
    },
  } as unknown as ClusterApi
  const log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') } as unknown as ScopedLogger
  const namespace = new RegistriesNamespace({
    namespace: 'registires',
    api,
    log,
    auditMs: 0,
    hasSecrets: () => secrets.hasSome,
    changed: () => void known.push(namespace.isKnown),
  })
  namespace.start()
  return { namespace, lines, known, events: told[0] as ResourceEvents<unknown> }
}

const what = 'the namespace registires, which --clusterRegistriesNamespace names,'
const missing = `${what} does not exist: no other cluster is followed until it has remote secrets`
const empty = `${what} has no remote secret, and the role of this service account does not permit to see whether it exists`

describe('the namespace of remote secrets', () => {
  it('is told once while it does not exist, and that it is there', () => {
    const { namespace, lines, known, events } = followed({ hasSome: false })
    expect(namespace.isKnown).to.equal(false)
    expect(namespace.trouble).to.equal(undefined)
    events.complete()
    namespace.judge()
    expect([namespace.trouble, lines]).to.deep.equal([missing, [`warn ${missing}`]])
    events.set('registires', true, true)
    events.complete()
    expect([namespace.trouble, lines.slice(1)]).to.deep.equal([undefined, [`info ${what} is there`]])
    events.remove('registires')
    expect([namespace.trouble, lines.slice(2)]).to.deep.equal([missing, [`warn ${missing}`]])
    expect(known).to.deep.equal([true, true, true])
  })

  it('is told to have no remote secret where it cannot be seen, once that is known, until it has one', () => {
    const secrets: { hasSome: boolean | undefined } = { hasSome: undefined }
    const { namespace, lines, events } = followed(secrets)
    events.failed('list', { code: 403 } as never, 'forbidden')
    expect([namespace.trouble, lines]).to.deep.equal([undefined, []])
    secrets.hasSome = false
    namespace.judge()
    namespace.judge()
    expect([namespace.trouble, lines]).to.deep.equal([empty, [`warn ${empty}`]])
    secrets.hasSome = true
    namespace.judge()
    expect(namespace.trouble).to.equal(undefined)
  })

  it('is not told while the server does not answer', () => {
    const { namespace, lines, events } = followed({ hasSome: false })
    events.failed('list', undefined, 'no answer')
    expect([namespace.trouble, lines]).to.deep.equal([undefined, []])
  })
})
