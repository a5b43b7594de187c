/** Groups with the resources of gRPC libraries without a proxy: one of each type for a view. They have the load assignments of sidecars. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import { ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import type { ServiceState } from '../../registry/merged-services.ts'
import { plainView } from '../../snapshot/view.ts'
import { type Draft, makeAll } from '../../xds/draft.ts'
import { proxylessClusters, proxylessListeners, proxylessRoutes } from '../../xds/proxyless/resources.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { clusterType, listenerType, routeType } from '../../xds/type-urls.ts'
import type { GroupSpec, Making } from './making.ts'

/** Makes the groups. */
export class ProxylessGroups {
  readonly #making: Making

  constructor(making: Making) {
    this.#making = making
  }

  /** The groups of a class, without its load assignments. */
  specs({ viewKey: key }: ProxyClass): GroupSpec[] {
    const viewKey = plainView(key)
    const group = <Schema extends DescMessage>(
      typeUrl: string,
      type: string,
      schema: Schema,
      drafts: (state: ServiceState) => Draft<MessageShape<Schema>>[],
    ): GroupSpec => ({
      id: `proxyless-${type}|${viewKey.id}`,
      typeUrl,
      given: [],
      build: () => ({ outcomes: makeAll(schema, type, this.#making.view(viewKey).services.flatMap(drafts)) }),
    })
    return [
      group(clusterType, 'cds', ClusterSchema, proxylessClusters),
      group(listenerType, 'lds', ListenerSchema, proxylessListeners),
      group(routeType, 'rds', RouteConfigurationSchema, proxylessRoutes),
    ]
  }
}
