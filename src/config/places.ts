/** Places of objects in files, as texts that pass through messages. */

/** Returns the place of an object in a file, as messages name it. `document`: its number; 0: the place is no file. */
export const placeOf = (file: string, document: number): string => (document === 0 ? file : `${file}, document ${document}`)

/** The file and document of a place ({@link placeOf}). */
export function readPlace(place: string): { readonly file: string; readonly document: number } {
  const [, file = '', document = '0'] = /^(.*), document (\d+)$/s.exec(place) ?? []
  return { file, document: Number(document) }
}
