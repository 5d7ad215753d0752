// Says what it is told with GnuSpeech: node gnuspeech.mjs PACKAGE, then a line of JSON for each text, answered by a line.
import { createInterface } from 'node:readline'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const { default: load } = await import(join(process.argv[2], 'wasm/gnuspeech.js'))
const gnuspeech = await load()

function string(text) {
  const bytes = new TextEncoder().encode(text)
  const at = gnuspeech._malloc(bytes.length + 1)
  gnuspeech.HEAPU8.set(bytes, at)
  gnuspeech.HEAPU8[at + bytes.length] = 0
  return at
}

for await (const line of createInterface({ input: process.stdin })) {
  const { text, files, out } = JSON.parse(line)
  for (const [name, content] of Object.entries(files)) gnuspeech.FS.writeFile(`/data/en/${name}`, content)
  const given = [text, '/said.wav', '/data/en', '/parameters.txt'].map(string)
  gnuspeech._GnuSpeech_synthesizeToFile(...given, false)
  given.forEach((at) => gnuspeech._free(at))
  writeFileSync(out, gnuspeech.FS.readFile('/said.wav'))
  console.log('said')
}
