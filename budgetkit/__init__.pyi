# ruff: noqa: I001
# The one list of public names: budgetkit/__init__.py reads it, line by line.

# Counting
from budgetkit.counters import counter as counter
from budgetkit.models import model as model
from budgetkit.requests import count_request as count_request

# Planning
from budgetkit.budget import Allocation as Allocation
from budgetkit.budget import Budget as Budget
from budgetkit.budget import Reserve as Reserve
from budgetkit.budget import Share as Share
from budgetkit.plan import Item as Item
from budgetkit.plan import Plan as Plan
from budgetkit.plan import allocate as allocate
from budgetkit.plan import fit as fit
from budgetkit.plan import sweep as sweep

# Conversations
from budgetkit.conversation import Conversation as Conversation
from budgetkit.conversation import build as build
from budgetkit.conversation import trim as trim
from budgetkit.trace import Message as Message
from budgetkit.trace import Trace as Trace
from budgetkit.trace import load_trace as load_trace
from budgetkit.trace import load_traces as load_traces

# The laboratory
from budgetkit.lab.app.app import App as App
from budgetkit.lab.app.card import DesignCard as DesignCard
from budgetkit.lab.explorers import BudgetExplorer as BudgetExplorer
from budgetkit.lab.explorers.accuracy import AccuracyExplorer as AccuracyExplorer
from budgetkit.lab.explorers.conversation import ConversationExplorer as ConversationExplorer
from budgetkit.lab.replay.replaying import replay as replay
from budgetkit.lab.sessions.session import Session as Session
from budgetkit.lab.sessions.comparing import compare as compare
from budgetkit.lab.sessions.listing import sessions as sessions
from budgetkit.lab.sessions.settings import what_if as what_if

# Modules
from budgetkit import presets as presets
from budgetkit import state as state
from budgetkit.lab import accuracy as accuracy
from budgetkit.lab import deciding as deciding
from budgetkit.lab import figures as figures
from budgetkit.lab.accuracy import corpora as corpora
from budgetkit.lab.replay import cost as cost
from budgetkit.pruning import policies as policies

# Modules that completion does not list
from budgetkit import conversation as conversation
from budgetkit import plan as plan
from budgetkit import requests as requests
from budgetkit import trace as trace
from budgetkit import truncation as truncation
from budgetkit.extras import endpoints as endpoints
from budgetkit.extras import redaction as redaction
from budgetkit.lab.accuracy import streaming as streaming
from budgetkit.models import limits as limits

__version__: str
__all__: list[str]
