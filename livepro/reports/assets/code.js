// The packed blocks of a process: unpacked when somebody looks at them.

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}
const u32 = async (text) => new Uint32Array(await inflate(text));
const u64 = async (text) => Float64Array.from(new BigUint64Array(await inflate(text)), Number);

/** The blocks of a process as arrays (memoised); null where the report has none. */
function blocksOf(process) {
  process.unpacked ??= process.code ? unpack(process.code) : Promise.resolve(null);
  return process.unpacked;
}

async function unpack(code) {
  const [id, fn, length, line, text] = await Promise.all([code.id, code.function, code.length, code.line, code.text].map(u32));
  const [offset, entries] = await Promise.all([code.offset, code.entries].map(u64));
  const step = new Uint8Array(await inflate(code.step));
  const texts = new TextDecoder().decode(await inflate(code.texts)).split("\n");
  const start = new Uint32Array(length.length + 1);
  for (let n = 0; n < length.length; n++) start[n + 1] = start[n] + length[n];
  return { id, fn, length, line, text, offset, entries, step, texts, start, partial: code.partial, lines: code.lines, threads: code.threads, counts: new Map() };
}

/** Executions of each instruction by one thread (its place in the process; -1: by all), and instructions by block. */
async function counts(blocks, thread) {
  if (!blocks.counts.has(thread)) {
    let entries = blocks.entries, partial = blocks.partial;
    if (thread >= 0) {
      const own = blocks.threads[thread];
      const [rows, times] = [await u32(own.row), await u64(own.entries)];
      entries = new Float64Array(blocks.entries.length);
      rows.forEach((row, n) => { entries[row] = times[n]; });
      partial = own.partial;
    }
    const executions = new Float64Array(blocks.text.length), instructions = new Float64Array(entries.length);
    for (let n = 0; n < entries.length; n++) {
      executions.fill(entries[n], blocks.start[n], blocks.start[n + 1]);
      instructions[n] = entries[n] * blocks.length[n];
    }
    for (const [row, prefix, times] of partial) {
      for (let n = 0; n < prefix; n++) executions[blocks.start[row] + n] += times;
      instructions[row] += prefix * times;
    }
    blocks.counts.set(thread, { entries, executions, instructions });
  }
  return blocks.counts.get(thread);
}

/** The instructions of some blocks in order of address, a row before each run of a source line. */
function listing(blocks, counted, rows) {
  const found = new Map();
  for (const row of rows) {
    let address = blocks.offset[row];
    for (let n = blocks.start[row]; n < blocks.start[row + 1]; n++) {
      const key = address + ":" + blocks.text[n];
      const before = found.get(key);
      if (before) { before.executions += counted.executions[n]; before.first ||= n === blocks.start[row]; }
      else found.set(key, { address, text: blocks.texts[blocks.text[n]], executions: counted.executions[n], line: blocks.line[n], first: n === blocks.start[row] });
      address += blocks.step[n];
    }
  }
  const ordered = [...found.values()].sort((a, b) => a.address - b.address);
  const out = [];
  let line = 0;
  for (const row of ordered) {
    if (row.line && row.line !== line) {
      const [file, number, text] = blocks.lines[row.line - 1];
      out.push({ source: true, text: `${base(file)}:${number}  ${text.trim()}`, executions: null, address: row.address });
    }
    line = row.line || line;
    out.push(row);
  }
  return out;
}
