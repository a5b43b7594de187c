/** Groups with the resources of gRPC libraries without a proxy: one of each type for a view. They have the load assignments of sidecars. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import { ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import type { ServiceState } from '../../registry/merged-services.ts'
import { plainView, type ViewKey } from '../../snapshot/view.ts'
import { type Draft, makeAll } from '../../xds/draft.ts'
import { proxylessClusters, proxylessListeners, proxylessRoutes } from '../../xds/proxyless/resources.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { clusterType, listenerType, routeType } from '../../xds/type-urls.ts'
import { type Built, GroupMaker, type Making } from './making.ts'

/** A group of the resources of one type for the services of a view. */
abstract class OfView extends GroupMaker {
  readonly #making: Making
  readonly #viewKey: ViewKey
  readonly #type: string

  constructor(making: Making, viewKey: ViewKey, type: string, typeUrl: string) {
    super({ id: `proxyless-${type}|${viewKey.id}`, typeUrl, given: [] })
    this.#making = making
    this.#viewKey = viewKey
    this.#type = type
  }

  /** Makes the resources of each service. */
  protected ofEach<Schema extends DescMessage>(schema: Schema, drafts: (state: ServiceState) => Draft<MessageShape<Schema>>[]): Built {
    return { outcomes: makeAll(schema, this.#type, this.#making.view(this.#viewKey).services.flatMap(drafts)) }
  }
}

class ProxylessClusters extends OfView {
  constructor(making: Making, viewKey: ViewKey) {
    super(making, viewKey, 'cds', clusterType)
  }

  make(): Built {
    return this.ofEach(ClusterSchema, proxylessClusters)
  }
}

class ProxylessListeners extends OfView {
  constructor(making: Making, viewKey: ViewKey) {
    super(making, viewKey, 'lds', listenerType)
  }

  make(): Built {
    return this.ofEach(ListenerSchema, proxylessListeners)
  }
}

class ProxylessRoutes extends OfView {
  constructor(making: Making, viewKey: ViewKey) {
    super(making, viewKey, 'rds', routeType)
  }

  make(): Built {
    return this.ofEach(RouteConfigurationSchema, proxylessRoutes)
  }
}

/** Makes the groups. */
export class ProxylessGroups {
  readonly #making: Making

  constructor(making: Making) {
    this.#making = making
  }

  /** The makers for a class, without those of its load assignments. */
  makersFor({ viewKey: key }: ProxyClass): GroupMaker[] {
    const viewKey = plainView(key)
    return [ProxylessClusters, ProxylessListeners, ProxylessRoutes].map((Maker) => new Maker(this.#making, viewKey))
  }
}
