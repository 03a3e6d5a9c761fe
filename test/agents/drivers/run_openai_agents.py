"""An agent of openai-agents with one tool. The task is the first argument."""

import subprocess
import sys

from agents import Agent, Runner, function_tool


@function_tool
def shell(command: str) -> str:
    """Runs a command."""
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout


print(Runner.run_sync(Agent(name="worker", model="gpt-test", tools=[shell]), sys.argv[1]).final_output)
