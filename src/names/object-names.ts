/** Names of objects and namespaces. */

const syntax = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/

/**
 * Whether text is a name that objects and namespaces can have: up to 253 letters, digits, `.`, `_` and `-`, of which the first and last are
 * letters or digits. Ids join such names with other characters.
 */
export const isObjectName = (text: string): boolean => syntax.test(text)
