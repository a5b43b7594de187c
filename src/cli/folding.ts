/** Folds texts at the width of a terminal. */
import { print, terminalWidth } from './print.ts'

/** A colour, which takes no place. */
const colour = /^\u001b\[\d+m/
/** The characters within names and addresses after which they may go on in the next line. */
const marks = /[-./:,;|@=~]/

/** Cuts a text into lines of at most a width, at spaces where there are some, otherwise after a mark of punctuation. Colours take no place. */
export function folded(text: string, width: number): string[] {
  const lines: string[] = []
  let rest = text
  for (let end = endOfLine(rest, width); end < rest.length; end = endOfLine(rest, width)) {
    lines.push(rest.slice(0, end).trimEnd())
    rest = rest.slice(end).trimStart()
  }
  return [...lines, rest]
}

/** Where the first line of a text ends. */
function endOfLine(text: string, width: number): number {
  let [shown, space, mark] = [0, 0, 0]
  const indent = text.length - text.trimStart().length
  for (let at = 0; at < text.length; at++) {
    const [sequence] = colour.exec(text.slice(at, at + longestColour)) ?? []
    if (sequence) {
      at += sequence.length - 1
      continue
    }
    if (shown === width) return text[at] === ' ' ? at : space || mark || at
    shown++
    if (text[at] === ' ' && at > indent) space = at
    else if (marks.test(text[at] as string)) mark = at + 1
  }
  return text.length
}

/** The length of the longest colour. */
const longestColour = 6

/** The length of the longest part of a text that is cut only where there is no place for it. */
export function longestPart(text: string): number {
  return Math.max(0, ...text.split(/(?<=[-./:,;|@=~])| /).map((part) => part.length))
}

/** Folds the lines of a text that are longer than a width, that of the terminal, if there is one. What is folded goes on two characters further in. */
export function foldedLines(text: string, width = terminalWidth()): string {
  if (width === Number.POSITIVE_INFINITY) return text
  return text
    .split('\n')
    .flatMap((line) => {
      const indent = ' '.repeat(Math.min(line.length - line.trimStart().length + 2, Math.floor(width / 2)))
      const end = endOfLine(line, width)
      if (end === line.length) return line
      const more = folded(line.slice(end).trimStart(), width - indent.length)
      return [line.slice(0, end).trimEnd(), ...more.map((part) => `${indent}${part}`)]
    })
    .join('\n')
}

/** Writes an answer of text and tables for people, whose lines of text are folded on a terminal. */
export const printAnswer = (text: string): void => print(foldedLines(text))
