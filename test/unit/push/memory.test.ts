/** State that was made for proxies is freed with the last of them. */
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Dependencies } from '../../../src/push/dependencies/dependencies.ts'
import { Memo } from '../../../src/push/dependencies/memo.ts'
import { Planner } from '../../../src/push/planner.ts'
import { names, testSettings } from '../../harness/settings.ts'

const node = (index: number, namespace: string, metadata: Record<string, unknown> = {}) =>
  readNode(
    { id: `sidecar~10.1.${index >> 8}.${index & 255}~p.${namespace}~${namespace}.svc.cluster.local`, metadata, locality: undefined },
    names,
    index % 2 === 0,
  )

function planner(services: number): Planner {
  const made = new Planner(testSettings())
  for (let index = 0; index < services; index++) {
    const spec = `{hosts: [s${index}.ns.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`
    const text = `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: s${index}, namespace: ns}\nspec: ${spec}\n`
    for (const object of parseConfigFile('f', text, names).objects) made.state.setConfig(configKey(object), object)
  }
  made.advance()
  return made
}

async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc')
  // A WeakRef keeps its target alive until the end of the current turn.
  await setImmediate()
  ;(runInNewContext('gc') as () => void)()
}

/** Counts everything that could leak. */
const counts = (made: Planner) => ({
  classes: made.classCount,
  groups: [...made.groups.ids()].length,
  slabs: made.slabs.usage(),
  spaces: made.builder.memo.spaces,
  questions: made.builder.questions,
  routes: made.builder.routeSets,
})

describe('memory of disconnected proxies', () => {
  /** Collects state that the connected proxies do not need. */
  const rest = (made: Planner, now: number) => {
    made.collect(now)
    made.collect(now + 5000)
    made.takePush()
  }

  it('returns to the initial counts, whatever metadata the proxies had', () => {
    const made = planner(50)
    rest(made, 0)
    const start = counts(made)
    for (let round = 1; round <= 2; round++) {
      for (let index = 0; index < 200; index++) {
        const file = `/certs/${round}/${index}`
        const certificates = { TLS_CLIENT_CERT_CHAIN: file, TLS_CLIENT_KEY: file, TLS_CLIENT_ROOT_CERT: file }
        const metadata = [{}, certificates, { NETWORK: file }, { IDLE_TIMEOUT: `${index + 1}s` }, { HTTP10: '1' }][index % 5] as Record<
          string,
          unknown
        >
        made.connect(`p${index}`, node(index, `made-up-${round}-${index}`, metadata))
        made.takePush()
      }
      expect(made.classCount).to.equal(200)
      for (let index = 0; index < 200; index++) made.disconnect(`p${index}`)
      rest(made, round * 100_000)
      expect(counts(made)).to.deep.equal(start)
    }
  })

  it('is kept while other proxies use it, and for a grace period', () => {
    const made = planner(5)
    made.connect('stays', node(1, 'one'))
    made.connect('goes', node(2, 'two', { NETWORK: 'n' }))
    made.takePush()
    const ofTheOther = [...made.groups.ids()].filter((id) => id.includes('one'))
    made.disconnect('goes')
    expect(made.collect(1000)).to.equal(false)
    expect(made.collect(3000)).to.equal(false)
    made.connect('back', node(2, 'two', { NETWORK: 'n' }))
    expect(made.takePush().groups).to.deep.equal([])
    made.disconnect('back')
    expect([made.collect(20_000), made.collect(21_000), made.collect(25_000)]).to.deep.equal([false, false, true])
    expect(made.takePush().retiredClasses).to.have.length(1)
    expect([...made.groups.ids()].filter((id) => id.includes('one'))).to.deep.equal(ofTheOther)
    expect(made.classCount).to.equal(1)
    expect(made.builder.routeSets).to.equal(2)
  })
})

describe('a namespace with services of its own', () => {
  const bytesInUse = async () => {
    await collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const [namespaces, services] = [60, 10]

  /** Bytes of heap for each service that only its namespace sees, with the class of its one proxy. */
  async function bytesOfEach(): Promise<number> {
    const made = new Planner(testSettings())
    const own = (namespace: number, index: number) => {
      const host = `s${index}.ns-${namespace}.svc.cluster.local`
      const ports = '[{number: 80, name: http}, {number: 9090, name: grpc, protocol: GRPC}]'
      const spec = `{hosts: [${host}], exportTo: ["."], addresses: [240.0.${namespace}.${index}], location: MESH_INTERNAL, resolution: STATIC, ports: ${ports}, endpoints: [{address: 10.0.0.1}]}`
      return `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: s${index}, namespace: ns-${namespace}}\nspec: ${spec}\n`
    }
    for (let namespace = 0; namespace < namespaces; namespace++)
      for (let index = 0; index < services; index++)
        for (const object of parseConfigFile('f', own(namespace, index), names).objects) made.state.setConfig(configKey(object), object)
    made.advance()
    const before = await bytesInUse()
    for (let index = 0; index < namespaces; index++) made.connect(String(index), node(2 * index, `ns-${index}`))
    made.takePush()
    const bytes = (await bytesInUse()) - before
    // The planner is in use until here.
    expect(made.classCount).to.equal(namespaces)
    return bytes / namespaces / services
  }

  it('takes less than 12 KiB of heap for each', async () => {
    // The first measurement contains code that is compiled for it.
    const measured = [await bytesOfEach(), await bytesOfEach(), await bytesOfEach()]
    expect(Math.min(...measured) / 1024).to.be.below(12)
  })
})

describe('the memo of generated values', () => {
  it('drops variants without readers although their subject stays', async () => {
    const state = { number: 1 }
    const record = new Dependencies(state)
    const memo = new Memo(record)
    const subject = {}
    const inputs: WeakRef<object>[] = []
    const group = record.product('group', new Set())
    for (let index = 0; index < 1000; index++) {
      record.produce(group, () => {
        const input = {}
        inputs.push(new WeakRef(input))
        memo.user = 'group'
        memo.get('space', [subject], memo.identityOf([input]), [input], () => index)
      })
    }
    await collectGarbage()
    expect(inputs.filter((input) => input.deref())).to.have.length.below(20)
  })

  it('does not retain the functions that produced values, nor their captures', async () => {
    const record = new Dependencies<object>({})
    const memo = new Memo(record)
    const subject = {}
    const large = (): WeakRef<object> => {
      const view = { name: 'view' }
      memo.get('space', [subject], '', [], () => view.name)
      return new WeakRef(view)
    }
    const view = large()
    await collectGarbage()
    expect([view.deref(), memo.get('space', [subject], '', [], () => 'again')]).to.deep.equal([undefined, 'view'])
  })

  it('keeps a space while a group uses it, and a cell while its inputs are unchanged', () => {
    const memo = new Memo(new Dependencies({}))
    const [subject, rule] = [{}, {}]
    const ask = (space: string, owner: string, under?: object) => {
      memo.user = owner
      const before = memo.made
      memo.get(space, [subject, under], '', [], () => 1)
      return memo.made > before ? 'made' : 'found'
    }
    expect([ask('s', 'a'), ask('s', 'b'), ask('s', 'b', rule), ask('s', 'a', rule), ask('t', 'a')]).to.deep.equal([
      'made',
      'found',
      'made',
      'found',
      'made',
    ])
    memo.release('a')
    expect(memo.spaces).to.equal(1)
    expect(ask('s', 'b')).to.equal('found')
    memo.release('b')
    expect(memo.spaces).to.equal(0)
    expect(ask('s', 'b')).to.equal('made')
  })
})
