import type { JsonValue } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { changedFields } from '../../../src/xds/changed-fields.ts'

const said = (before: JsonValue, now: JsonValue, most = 20) =>
  changedFields(before, now, most).fields.map(({ field, before: old, now: own }) => [field, old, own])

const endpoint = (address: string, weight = 1) => ({
  endpoint: { address: { socket_address: { address, port_value: 80 } } },
  load_balancing_weight: weight,
})

describe('the fields in which two states of a resource differ', () => {
  it('are found by the names of items, wherever these stand', () => {
    const hosts = (...names: string[]) => ({ virtual_hosts: names.map((name) => ({ name, domains: [name] })) })
    expect(said(hosts('a', 'b'), hosts('b', 'a'))).to.deep.equal([])
    expect(said(hosts('a', 'b'), hosts('c', 'b', 'a'))).to.deep.equal([['virtual_hosts[c]', undefined, { name: 'c', domains: ['c'] }]])
    const timeout = (seconds: string) => ({ virtual_hosts: [{ name: 'a', routes: [{ name: 'r', route: { timeout: seconds } }] }] })
    expect(said(timeout('1s'), timeout('2s'))).to.deep.equal([['virtual_hosts[a].routes[r].route.timeout', '1s', '2s']])
  })

  it('are found by the addresses of endpoints and the places of their groups', () => {
    const groups = (zone: string, ...endpoints: object[]) =>
      ({ endpoints: [{ locality: { region: 'r', zone }, lb_endpoints: endpoints }] }) as JsonValue
    expect(said(groups('z', endpoint('10.0.0.1'), endpoint('10.0.0.2')), groups('z', endpoint('10.0.0.2', 3)))).to.deep.equal([
      ['endpoints[r/z priority 0].lb_endpoints[10.0.0.1:80]', endpoint('10.0.0.1'), undefined],
      ['endpoints[r/z priority 0].lb_endpoints[10.0.0.2:80].load_balancing_weight', 1, 3],
    ])
    expect(said(groups('z'), groups('y')).map(([field]) => field)).to.deep.equal(['endpoints[r/z priority 0]', 'endpoints[r/y priority 0]'])
  })

  it('have the order of named items where it means something', () => {
    const filters = (...names: string[]) => ({ filters: names.map((name) => ({ name })) })
    expect(said(filters('a', 'b'), filters('b', 'a'))).to.deep.equal([['filters (order)', ['a', 'b'], ['b', 'a']]])
  })

  it('leave out what items without names begin and end with', () => {
    const routes = (...prefixes: string[]) => ({ routes: prefixes.map((prefix) => ({ match: { prefix } })) })
    expect(said(routes('/a', '/b'), routes('/c', '/a', '/b'))).to.deep.equal([['routes[0]', undefined, { match: { prefix: '/c' } }]])
    expect(said(routes('/a', '/x', '/b'), routes('/a', '/y', '/b'))).to.deep.equal([['routes[1].match.prefix', '/x', '/y']])
    expect(said(routes('/a', '/a'), routes('/a'))).to.deep.equal([['routes[1]', { match: { prefix: '/a' } }, undefined]])
  })

  it('are whole messages where their types differ, and no more than asked for', () => {
    const config = (type: string, more: object) => ({ typed_config: { '@type': type, ...more } }) as JsonValue
    expect(said(config('a', { x: 1 }), config('b', { y: 1 }))).to.have.length(1)
    const many = changedFields({ a: 1, b: 1, c: 1 }, { a: 2, b: 2, c: 2 }, 2)
    expect([many.fields.length, many.others]).to.deep.equal([2, 1])
  })
})
