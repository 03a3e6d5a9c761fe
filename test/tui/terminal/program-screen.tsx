import { Box, Text } from 'ink';
import type { Capabilities } from '../../../tui/terminal/capabilities.js';
import type { Size } from '../../../tui/terminal/io.js';
import { SECRET } from './program-secret.js';

export interface ScreenProps {
  size: Size;
  heard: readonly string[];
  resizes: number;
  ticks: number;
  capabilities: Capabilities;
}

/** As tall and as wide as the terminal, a mark in each corner, so that scrolling or a cut line shows. */
function Screen({ size, heard, resizes, ticks, capabilities }: ScreenProps) {
  const { colours, hasSymbols, isUtf8, hasMotion } = capabilities;
  return (
    <Box flexDirection="column" height={size.rows} width={size.columns} borderStyle={hasSymbols ? 'round' : 'classic'}>
      <Text color="red" bold>
        size {size.columns}x{size.rows} resizes {resizes} ticks {ticks}
      </Text>
      <Text wrap="truncate">
        colours {colours} symbols {String(hasSymbols)} utf8 {String(isUtf8)} motion {String(hasMotion)} ż日本語
      </Text>
      <Text>inputs {heard.length}</Text>
      <Box flexGrow={1} flexDirection="column" overflow="hidden">
        {heard.slice(-Math.max(1, size.rows - 6)).map((text, index) => (
          <Text key={index}>heard {text}</Text>
        ))}
      </Box>
      <Text wrap="truncate">last line</Text>
    </Box>
  );
}

function Broken(): never {
  throw new Error(`cannot be laid out with ${SECRET}`);
}

export const screen = (props: ScreenProps) => <Screen {...props} />;
export const broken = () => <Broken />;
