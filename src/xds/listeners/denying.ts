/** The listener that replaces one that proxies refuse, or that cannot be made although policies select the workload. */
import { create } from '@bufbuild/protobuf'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { RouterSchema } from '../../../protocols/gen/envoy/extensions/filters/http/router/v3/router_pb.js'
import { HttpConnectionManagerSchema } from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import { pack } from '../message.ts'

const statPrefix = 'refused'
const typed = (value: ReturnType<typeof pack>) => ({ case: 'typedConfig' as const, value })

/**
 * Returns a listener that denies everything in place of another one (`envoy.config.listener.v3.Listener`): it answers plain-text requests
 * with 403 and anything else as a bad request. It keeps only the name, the addresses, the traffic direction, `bind_to_port` and `transparent`
 * of the other listener. Without `transparent`, a listener of TPROXY would get no redirected connection.
 */
export function denyingListener({ name, address, additionalAddresses, bindToPort, transparent, trafficDirection }: Listener): Listener {
  const manager = pack(HttpConnectionManagerSchema, {
    statPrefix,
    httpFilters: [{ name: 'envoy.filters.http.router', configType: typed(pack(RouterSchema, {})) }],
    routeSpecifier: {
      case: 'routeConfig',
      value: {
        name: statPrefix,
        virtualHosts: [
          {
            name: statPrefix,
            domains: ['*'],
            routes: [
              {
                match: { pathSpecifier: { case: 'prefix', value: '/' } },
                action: {
                  case: 'directResponse',
                  value: { status: 403, body: { specifier: { case: 'inlineString', value: 'this listener has no configuration that can be used' } } },
                },
              },
            ],
          },
        ],
      },
    },
  })
  return create(ListenerSchema, {
    name,
    additionalAddresses,
    trafficDirection,
    ...(address ? { address } : {}),
    ...(bindToPort === undefined ? {} : { bindToPort }),
    ...(transparent === undefined ? {} : { transparent }),
    filterChains: [{ name: statPrefix, filters: [{ name: 'envoy.filters.network.http_connection_manager', configType: typed(manager) }] }],
  })
}
