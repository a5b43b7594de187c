import { setTimeout as pause } from 'node:timers/promises'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'

describe('an idle service', () => {
  const service = new Service({ flags: ['--writers', '1'] })
  after(() => service.dispose())

  it('collects garbage in each of its threads', async () => {
    await service.start()
    const heaps = async () =>
      new Map(
        [...(await service.metrics()).matchAll(/^actor_heap_bytes\{actor="([^"]+)"\} (\S+)$/gm)].map(([, actor, bytes]) => [
          actor as string,
          Number(bytes),
        ]),
      )
    const most = new Map<string, number>()
    for (let round = 1; round <= 6; round++) {
      service.write('many.yaml', Array.from({ length: 1500 }, (_, index) => serviceEntry(`many-${index}`, `10.0.0.${round}`)).join('---\n'))
      await until('the change', async () => JSON.stringify(await service.debug('endpointShardz')).includes(`10.0.0.${round}`))
      for (const [actor, bytes] of await heaps()) most.set(actor, Math.max(bytes, most.get(actor) ?? 0))
    }
    service.remove('many.yaml')
    // Polled rarely, since a poll is work for the threads.
    await until('garbage to be collected', async () => {
      await pause(6000)
      const left = await heaps()
      return ['source/files', 'push-queue', 'jwks-resolver'].every((actor) => (left.get(actor) ?? 0) < 0.75 * (most.get(actor) ?? 0))
    })
  })
})
