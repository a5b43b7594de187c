/** A digest of texts for what need not be secret, nor safe against who looks for two that are alike. */

/** FNV-1a of the UTF-16 units of a text, 32 bits with a sign; `seed` is the digest of what stands before it. */
export function fnv1a(text: string, seed = 0x811c9dc5): number {
  let sum = seed
  for (let index = 0; index < text.length; index++) sum = Math.imul(sum ^ text.charCodeAt(index), 0x01000193)
  return sum | 0
}
