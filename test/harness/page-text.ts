/** What pages say, in tests. */

/** The text of an answer without the newline that every page of text ends with; fails if it is missing. */
export async function textOf(answer: Response): Promise<string> {
  const text = await answer.text()
  if (text !== '' && !text.endsWith('\n')) throw new Error(`the answer ${JSON.stringify(text.slice(0, 100))} does not end with a newline`)
  return text.slice(0, -1)
}
