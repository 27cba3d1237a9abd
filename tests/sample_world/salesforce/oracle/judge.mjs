// Reads statements as JSON lines {"language": "soql" | "sosl", "text": "…"} and says of each, in the same order, who
// accepts it: {"apex": true, "jetstream": false, "tokens": ["SELECT", …]}. The second parser knows no SOSL (null).
import { createInterface } from "node:readline";
import { ApexErrorListener, ApexLexer, ApexParserFactory } from "@apexdevtools/apex-parser";
import { isQueryValid } from "@jetstreamapp/soql-parser-js";

const END_OF_INPUT = -1;
const DEFAULT_CHANNEL = 0;

class Listener extends ApexErrorListener {
  failed = false;

  apexSyntaxError() {
    this.failed = true;
  }
}

function parseAsApex(text, rule) {
  const listener = new Listener();
  const { parser } = ApexParserFactory.createLexerAndParser(text, listener);
  parser[rule]();
  const stream = parser.getTokenStream();
  const ended = stream.LA(1) === END_OF_INPUT;
  stream.fill();
  const tokens = stream.tokens
    .filter((token) => token.channel === DEFAULT_CHANNEL && token.type !== END_OF_INPUT)
    .map((token) => ApexLexer.symbolicNames[token.type]);
  return { apex: ended && !listener.failed, tokens };
}

function judge({ language, text }) {
  return language === "soql"
    ? { ...parseAsApex(text, "query"), jetstream: isQueryValid(text) }
    : { ...parseAsApex(`[${text}]`, "soslLiteralAlt"), jetstream: null };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(judge(JSON.parse(line)))}\n`);
}
