/** Cases of the policy matrix: addresses, ports and identities of source and destination without mutual TLS. */
import { allow, type Case, deny, from, to, when } from './shape.ts'

export const sourceCases: readonly Case[] = [
  { name: 'source addresses', policies: [allow(from({ ipBlocks: ['127.0.0.0/8'] }))], rows: [{ status: 200 }] },
  {
    name: 'other source addresses',
    policies: [allow(from({ ipBlocks: ['10.0.0.0/8', '192.0.2.1'] }))],
    rows: [{ status: 403 }, { headers: [['x-forwarded-for', '10.0.0.1']], status: 403 }],
  },
  { name: 'notIpBlocks', policies: [allow(from({ notIpBlocks: ['127.0.0.1'] }))], rows: [{ status: 403 }] },
  { name: 'DENY by address', policies: [deny(when('source.ip', ['127.0.0.1/32']))], rows: [{ status: 403 }] },
  { name: 'remote addresses', policies: [allow(from({ remoteIpBlocks: ['127.0.0.1'] }))], rows: [{ status: 200 }] },
  {
    name: 'ALLOW of remote addresses, which a forged X-Forwarded-For does not match',
    policies: [allow(from({ remoteIpBlocks: ['10.0.0.0/8'] }))],
    rows: [
      { status: 403 },
      { headers: [['x-forwarded-for', '10.0.0.1']], status: 403 },
      { headers: [['x-forwarded-for', '::ffff:10.0.0.1']], status: 403 },
    ],
  },
  { name: 'DENY of an IPv4-mapped IPv6 range', policies: [deny(from({ ipBlocks: ['::ffff:127.0.0.0/104'] }))], rows: [{ status: 403 }] },
  { name: 'ports', policies: [allow(to({ ports: ['$port'] }))], rows: [{ status: 200 }] },
  { name: 'other ports', policies: [allow(to({ ports: ['1'] }))], rows: [{ status: 403 }] },
  { name: 'notPorts', policies: [deny(to({ notPorts: ['1'] }))], rows: [{ status: 403 }] },
  {
    name: 'destination address and port',
    policies: [
      allow({
        when: [
          { key: 'destination.ip', values: ['$address'] },
          { key: 'destination.port', values: ['$port'] },
        ],
      }),
    ],
    rows: [{ status: 200 }],
  },
  {
    name: 'identities without mutual TLS: ALLOW',
    policies: [allow(from({ principals: ['*'] }), from({ namespaces: ['*'] }))],
    rows: [{ status: 403 }],
  },
  {
    name: 'identities without mutual TLS: DENY',
    policies: [deny(from({ principals: ['*'] }), from({ namespaces: ['a'] }))],
    rows: [{ status: 200 }],
  },
  {
    name: 'identities without mutual TLS: DENY all but',
    policies: [deny(from({ notPrincipals: ['cluster.local/ns/a/sa/b'] }))],
    rows: [{ status: 403 }],
  },
  { name: 'identities without mutual TLS: ALLOW all but', policies: [allow(from({ notNamespaces: ['a'] }))], rows: [{ status: 200 }] },
]
