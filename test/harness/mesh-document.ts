/** Formats documents of the mesh's kinds as YAML. */

/** Formats a document of a `networking` kind, in the namespace `shop` unless another is given. */
export const networkingDocument = (kind: string, name: string, spec: string, namespace = 'shop'): string =>
  `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n`
