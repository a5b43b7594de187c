import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { routeType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

/** The versions of a fresh proxy's resources, by type and name. */
async function versionsOf(service: Service): Promise<Map<string, string>> {
  const client = await new XdsClient(service.grpcPort, sidecarNode('10.9.0.1', 'pod', 'ns'), true).connect().ready()
  await until('the routes', () => [...client.versions.keys()].some((key) => key.startsWith(`${routeType}|`)))
  client.close()
  return client.versions
}

describe('versions of resources', () => {
  const service = new Service()
  const replica = new Service({ env: { MESHD_CA_STATE_DIR: service.authorityDir } })
  after(() => Promise.all([service.dispose(), replica.dispose()]))

  it('are the same after a restart and at a replica with the same state directory, and others with other secrets', async () => {
    for (const each of [service, replica]) each.write('reviews.yaml', serviceEntry('reviews'))
    await service.start()
    const first = await versionsOf(service)
    await service.stop()
    await service.start()
    expect(Object.fromEntries(await versionsOf(service)), 'after a restart').to.deep.equal(Object.fromEntries(first))
    await replica.start()
    expect(Object.fromEntries(await versionsOf(replica)), 'at a replica').to.deep.equal(Object.fromEntries(first))

    await replica.stop()
    writeFileSync(join(service.authorityDir, 'version-secrets.json'), '{"versionKey": "secret"}')
    await replica.start()
    await until('the warning', () =>
      /warn\s+the secrets of versions are not kept: \S+version-secrets\.json: does not hold the secrets of versions: remove it to have new ones made; after the next start/.test(
        replica.output.soFar(),
      ),
    )
    const others = await versionsOf(replica)
    const differing = [...first].filter(([key, version]) => others.get(key) !== version).map(([key]) => key.split('|')[0])
    expect(new Set(differing), 'types of compound resources').to.deep.equal(new Set([routeType]))
  })
})
