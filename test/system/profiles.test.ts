/** Profiles of the threads of a running service. */
import { gunzipSync } from 'node:zlib'
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { type Profile, ProfileSchema } from '../../protocols/gen/perftools/profiles/profile_pb.js'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

/** The threads, functions and sample types of a profile; every reference in it must lead somewhere. */
function contents(profile: Profile) {
  const text = (index: bigint) => profile.stringTable[Number(index)] as string
  const functions = new Map(profile.function.map(({ id, name }) => [id, text(name)]))
  const locations = new Map(profile.location.map(({ id, line }) => [id, functions.get(line[0]?.functionId ?? 0n)]))
  const names = profile.sample.flatMap(({ locationId }) => locationId.map((id) => locations.get(id)))
  expect(names).to.not.include(undefined)
  return {
    types: profile.sampleType.map(({ type, unit }) => `${text(type)}/${text(unit)}`),
    threads: new Set(profile.sample.flatMap(({ label }) => label.map(({ key, str }) => `${text(key)}=${text(str)}`))),
    functions: new Set(names),
    values: profile.sample.map(({ value }) => value),
  }
}

describe('profiles', () => {
  const service = new Service({
    flags: ['--profile', '--registries', 'Mock'],
    env: { PILOT_MOCK_SERVICES: '500', PILOT_MOCK_CHURN_PER_SECOND: '1000' },
  })
  const idle = new Service()
  before(() => Promise.all([service.start(), idle.start()]))
  after(() => Promise.all([service.dispose(), idle.dispose()]))
  /** Has the service make large pages until `recorded` resolves. */
  const whileBusy = async <T>(recorded: Promise<T>): Promise<T> => {
    let isOver = false
    const over = recorded.finally(() => (isOver = true))
    while (!isOver) await (await fetch(`http://127.0.0.1:${service.httpPort}/debug/endpointz`)).text()
    return over
  }
  const at = (path: string, { httpPort } = service) => fetch(`http://127.0.0.1:${httpPort}/debug/pprof/${path}`)
  const profileOf = async (path: string) => {
    const response = await at(path)
    expect([response.status, response.headers.get('content-type')]).to.deep.equal([200, 'application/octet-stream'])
    const profile = fromBinary(ProfileSchema, gunzipSync(Buffer.from(await response.arrayBuffer())))
    expect(Number(profile.durationNanos / 1_000_000n)).to.be.within(1000, 90_000)
    return contents(profile)
  }

  it('of CPU time have the stacks of the main thread and of the busy actors', async () => {
    const { types, threads, functions, values } = await whileBusy(profileOf('profile?seconds=1'))
    expect(types).to.deep.equal(['samples/count', 'cpu/nanoseconds'])
    expect([...threads]).to.include.members(['thread=main', 'thread=push-queue'])
    expect([...functions])
      .to.include('endpointPage')
      .and.to.not.include('(idle)')
    for (const [count = 0n, nanos = 0n] of values) expect(count > 0n && nanos >= 0n).to.equal(true)
  })

  it('of the heap have what was allocated meanwhile', async () => {
    // What is sampled of a thread may be collected before the profile ends.
    await until('the main thread to have some of it', async () => {
      const { types, threads, values } = await whileBusy(profileOf('heap?seconds=1'))
      expect(types).to.deep.equal(['inuse_space/bytes'])
      expect(values.every(([bytes = 0n]) => bytes > 0n)).to.equal(true)
      return [...threads].includes('thread=main')
    })
  })

  it('are recorded one at a time, and for a minute at most', async () => {
    const [one, other] = await Promise.all([at('profile?seconds=1'), at('heap?seconds=1')])
    expect([one.status, other.status].sort()).to.deep.equal([200, 503])
    for (const seconds of ['0', '-1', '61', 'x']) expect((await at(`profile?seconds=${seconds}`)).status, seconds).to.equal(400)
  })

  it('are listed on a page, and only served where the flag says so', async () => {
    expect(await (await at('')).text()).to.contain('href="/debug/pprof/heap"')
    expect(await (await at('cmdline')).text()).to.contain('--profile')
    for (const path of ['', 'profile', 'heap', 'cmdline']) expect((await at(path, idle)).status, path).to.equal(404)
  })
})
