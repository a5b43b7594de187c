/** A non-cryptographic digest of texts. It is no protection against collisions made on purpose. */

/** Computes FNV-1a over the UTF-16 code units of a text, as a signed 32-bit number. `seed`: the digest of the text before it. */
export function fnv1a(text: string, seed = 0x811c9dc5): number {
  let sum = seed
  for (let index = 0; index < text.length; index++) sum = Math.imul(sum ^ text.charCodeAt(index), 0x01000193)
  return sum | 0
}
