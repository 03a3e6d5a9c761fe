"""An agent of pydantic-ai with one tool. Its model is the first argument, for example `openai-chat:gpt-test`, the task the second."""

import subprocess
import sys

from pydantic_ai import Agent

agent = Agent(sys.argv[1])


@agent.tool_plain
def shell(command: str) -> str:
    """Runs a command."""
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout


print(agent.run_sync(sys.argv[2]).output)
