/** What became of pushes, from the writers to those who ask: by JSON, as a stream over gRPC, and when actors die. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, type ClientReadableStream, credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import type { ProxyDigests } from '../../actors/discovery/distribution/distribution.ts'
import {
  type Push,
  WatchPushesRequestSchema,
  type WatchPushesResponse,
  WatchPushesResponseSchema,
} from '../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { adminServiceName } from '../../protocols/messages/admin-call.ts'
import { routeType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const route = (timeout: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: ns}\nspec: {hosts: [a], http: [{timeout: ${timeout}, route: [{destination: {host: a}}]}]}\n`

/** The answer of `ListPushes` in JSON. */
interface Listed {
  readonly pushes?: readonly {
    readonly id: string
    readonly reasons: readonly string[]
    readonly objects?: readonly {
      readonly object: { readonly kind: string; readonly name: string; readonly place: string }
      readonly generation: string
    }[]
    readonly acknowledged?: number
    readonly refused?: number
    readonly outstanding?: number
    readonly disconnected?: number
    readonly classes?: number
    readonly bytes?: string
    readonly bytesSent?: string
    readonly slowest?: readonly { readonly nodeId: string; readonly ms: number; readonly outstanding?: boolean }[]
    readonly refusals?: readonly { readonly nodeId: string; readonly reason: string; readonly typeUrl: string }[]
  }[]
  readonly cursor: string
  readonly dropped?: number
}

for (const mode of ['threads', 'in-thread'] as const)
  describe(`what became of pushes (${mode})`, () => {
    const discovery = new LocalDiscovery({ mode })
    const clients: XdsClient[] = []
    const connect = async (name: string, delta: boolean) => {
      const client = await new XdsClient(discovery.grpcPort, sidecarNode(`10.9.0.${clients.length + 1}`, name, 'ns'), delta).connect().ready()
      clients.push(client)
      return client
    }
    const list = async (request: object = {}): Promise<Listed> => {
      const answer = await fetch(`http://127.0.0.1:${discovery.httpPort}/${adminServiceName}/ListPushes`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(request),
      })
      return (await answer.json()) as Listed
    }
    const digests = () => discovery.service.supervisor.ask<ProxyDigests[]>('distribution', 'digests')
    const known = async () => (await digests()).flatMap(({ nodeId }) => nodeId.split('~')[2] ?? []).sort()

    before(async () => {
      discovery.write('a.yaml', serviceEntry('a', '10.0.0.1'))
      discovery.write('route.yaml', route('1s'))
      await discovery.start({ registries: [] })
      await discovery.service.ready()
    })
    after(async () => {
      for (const client of clients) client.close()
      await discovery.dispose()
    })

    it('a push names its objects and times, and counts who acknowledged, refused or owes it, SotW and delta', async () => {
      const [sotw, delta, silent, refuses] = [
        ...[await connect('sotw', false), await connect('delta', true)],
        ...[await connect('silent', false), await connect('refuses', true)],
      ]
      await until('all proxies', async () => (await known()).length === 4)
      const { cursor } = await list()
      if (silent) silent.silent = true
      if (refuses) refuses.refuseNext = 'a: cannot be used'
      discovery.write('route.yaml', route('2s'))
      const become = (counts: Record<string, number>) =>
        until(`the last push to be ${JSON.stringify(counts)}`, async () => {
          const { pushes } = await list({ after: cursor })
          const last = pushes?.at(-1)
          return last !== undefined && Object.entries(counts).every(([name, count]) => (last[name as 'refused'] ?? 0) === count)
        })
      await become({ acknowledged: 2, refused: 1, outstanding: 1 })
      const [push, ...others] = (await list({ after: cursor })).pushes ?? []
      expect(others).to.deep.equal([])
      expect(push?.reasons).to.deep.equal(['config'])
      expect(push?.objects?.[0]).to.deep.include({ generation: '2' })
      expect(push?.objects?.[0]?.object).to.include({ kind: 'VirtualService', name: 'a' })
      expect(push?.objects?.[0]?.object.place).to.contain('route.yaml')
      expect([Number(push?.bytes) > 0, Number(push?.bytesSent) > 0, push?.classes]).to.deep.equal([true, true, 1])
      expect(push?.slowest?.map(({ outstanding }) => outstanding ?? false)).to.deep.equal([true, false, false])
      expect(push?.slowest?.[0]?.nodeId).to.contain('silent')
      expect(push?.refusals?.map(({ nodeId, reason, typeUrl }) => [nodeId.split('~')[2], reason, typeUrl])).to.deep.equal([
        ['refuses.ns', 'a: cannot be used', routeType],
      ])
      silent?.close()
      await become({ acknowledged: 2, refused: 1, outstanding: 0, disconnected: 1 })
      expect([sotw?.closed, delta?.closed]).to.deep.equal([undefined, undefined])
    })

    it('a stream over gRPC tells each push and its end, and goes on from a cursor', async () => {
      const client = new Client(`127.0.0.1:${discovery.grpcPort}`, credentials.createInsecure())
      const watch = (after: string): [Push[], ClientReadableStream<WatchPushesResponse>, () => string] => {
        const told: Push[] = []
        let cursor = ''
        const stream = client.makeServerStreamRequest<{ after: string }, WatchPushesResponse>(
          `/${adminServiceName}/WatchPushes`,
          (request) => Buffer.from(toBinary(WatchPushesRequestSchema, create(WatchPushesRequestSchema, request))),
          (bytes) => fromBinary(WatchPushesResponseSchema, bytes),
          { after },
        )
        stream.on('data', (message: WatchPushesResponse) => {
          told.push(...message.pushes)
          cursor = message.cursor
        })
        stream.on('error', () => undefined)
        return [told, stream, () => cursor]
      }
      try {
        const [told, stream, cursor] = watch('')
        await until('the pushes so far', () => cursor() !== '')
        const before = told.at(-1)?.id ?? 0n
        discovery.write('route.yaml', route('4s'))
        const isAcknowledged = ({ acknowledged, outstanding }: Push) => acknowledged === 3 && outstanding === 0
        await until('the next push to be acknowledged', () => told.some((push) => push.id > before && isAcknowledged(push)))
        stream.cancel()
        const [again, next, place] = watch(cursor())
        await until('the first message', () => place() !== '')
        expect(again, 'what was told already').to.deep.equal([])
        next.cancel()
      } finally {
        client.close()
      }
    })

    it('the page /debug/pushz shows the same', async () => {
      const page = await discovery.debug<{ pushes: { id: number; objects: { key: string }[] }[]; cursor: string }>('pushz')
      const { pushes, cursor } = await list()
      expect(page.pushes.map(({ id }) => String(id))).to.deep.equal(pushes?.map(({ id }) => id))
      expect(page.cursor).to.equal(cursor)
      expect(page.pushes.at(-1)?.objects.map(({ key }) => key)).to.deep.equal(['VirtualService/ns/a'])
      expect((await list({ namespace: 'elsewhere' })).pushes ?? []).to.deep.equal([])
    })

    it('when the record dies, the writers tell it of all proxies again', async () => {
      const before = await known()
      const { restarts } = discovery.state('distribution')
      discovery.service.supervisor.kill('distribution')
      await until('the restart', () => discovery.state('distribution').restarts > restarts && discovery.state('distribution').state === 'running')
      await until('the same proxies', async () => {
        const now = await digests().then(
          () => known(),
          () => [],
        )
        return JSON.stringify(now) === JSON.stringify(before)
      })
      expect((await digests()).every(({ digests: of }) => Object.values(of).every((digest) => digest !== ''))).to.equal(true)
    })

    it('when a writer dies, its proxies leave', async () => {
      for (const name of ['xds-writer/0', 'xds-writer/1']) {
        const { restarts } = discovery.state(name)
        discovery.service.supervisor.kill(name)
        await until('the restart', () => discovery.state(name).restarts > restarts)
      }
      await until('no proxies', async () => (await known()).length === 0)
    })
  })
