// Copied into the generated files' folder, which take `fileDesc` from here (see generate.js).
import { fileDesc as hydrate } from '@bufbuild/protobuf/codegenv2'

/**
 * Makes the descriptor of a .proto file from its schema and the descriptors of the files that it imports. The library's own function goes through
 * all that those import in turn, once for each path there is to it, although only the types of direct imports can be named in a file; here it
 * sees the direct imports alone, which takes a third off the loading of Envoy's schemas.
 */
export function fileDesc(schema, imports = []) {
  const dependencies = imports.map((file) => file.dependencies)
  for (const file of imports) file.dependencies = []
  try {
    return hydrate(schema, imports)
  } finally {
    for (const [index, file] of imports.entries()) file.dependencies = dependencies[index]
  }
}
