/** The ServiceEntry of most tests: a service in the namespace `ns` with the HTTP port 80 and one endpoint. */

/** Formats the document. Its host is `<name>.ns.svc.cluster.local`. */
export function serviceEntry(name: string, address = '10.0.0.1'): string {
  return `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ns}\nspec: {hosts: [${name}.ns.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: ${address}}]}\n`
}
