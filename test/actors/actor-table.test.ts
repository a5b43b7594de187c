import { expect } from 'chai'
import { actorTable } from '../../actors/discovery/actor-table.ts'
import type { PushQueueConfig, XdsWriterConfig } from '../../protocols/messages/config.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import { readFeatures } from '../../src/config/features.ts'

describe('the table of actors', () => {
  it('gives writers the key of the sums that the push queue makes, of each process another', () => {
    const options = { registries: [] } as unknown as DiscoveryOptions
    const listen = { host: '127.0.0.1', port: 0, secure: undefined }
    const keys = () => {
      const { actors } = actorTable({
        options,
        features: readFeatures({}).features,
        writers: 2,
        listen,
        mode: 'in-thread',
        module: (name) => new URL(`file:///${name}`),
      })
      const of = (prefix: string) => actors.filter(({ name }) => name.startsWith(prefix)).map(({ config }) => config)
      const [queue] = of('push-queue') as PushQueueConfig[]
      return [queue?.secrets.versionKey, ...(of('xds-writer') as XdsWriterConfig[]).map(({ versionKey }) => versionKey)]
    }
    const [one, other] = [new Set(keys()), new Set(keys())]
    expect([one.size, other.size, new Set([...one, ...other]).size]).to.deep.equal([1, 1, 2])
  })
})
