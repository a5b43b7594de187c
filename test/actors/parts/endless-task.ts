/** Pool task for tests: never ends when it is told so, and otherwise answers with what it is given. */
export default function answer(task: { endless: boolean }): { endless: boolean } {
  while (task.endless) {}
  return task
}
