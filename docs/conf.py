"""How the site is built: sphinx-build -W --keep-going -b html docs docs/_build/html, without a network."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Any

import vendimeter

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "2")  # the examples are small
os.environ["MPLBACKEND"] = "Agg"
os.environ["HF_HUB_OFFLINE"] = "1"  # what is not on this machine is not fetched

sys.modules["vendimeter.family"] = vendimeter.family  # by the name that users have for it

project = "Vendimeter"
author = "The Vendimeter developers"
copyright = author
release = version = importlib.metadata.version("vendimeter")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_page",
    "docstring_bars",
    "offline_mathjax",
    "outside_links",
    "schema_page",
]
exclude_patterns = ["_build", "_ext", "examples", "gallery/**/*.ipynb", "gallery/**/*.py.md5", "**/*.json"]
templates_path = ["_templates"]
default_role = "py:obj"  # docstrings name objects in single backticks
add_module_names = True
smartquotes = False  # --by is no dash, and code is quoted as it is typed

# ---------------------------------------------------------------------------------------------------- pages in Markdown

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath", "attrs_inline"]
myst_heading_anchors = 4  # the same links as on GitHub
myst_links_external_new_tab = False

mathjax_path = "mathjax/tex-svg.js"  # a file of the site; see _ext/offline_mathjax.py
mathjax3_config = {"options": {"enableMenu": False}}  # the menu would load more files

# ------------------------------------------------------------------------------------------------------- the reference

autosummary_generate = True
autosummary_ignore_module_all = False
# `score` and `Score` would be one file where names of files do not tell capitals apart.
autosummary_filename_map = {
    f"{home}.{name}": f"{home}.{name}-class"
    for home, names in {
        "vendimeter": vendimeter.__all__,
        "vendimeter.metrics": vendimeter.metrics.__all__,
        "vendimeter.family": vendimeter.family.__all__,
    }.items()
    for name in names
    if name != name.lower() and name.lower() in names
}
autodoc_typehints = "none"  # docstrings say what parameters are
autodoc_member_order = "groupwise"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False
numpydoc_use_plots = False

# --------------------------------------------------------------------------------------------------------- the gallery

sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"spread_points\.py",  # a script with options, which a page shows
    "within_subsection_order": "ExampleTitleSortKey",
    "reset_modules": ("gallery_start.reset",),
    "reset_modules_order": "both",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "capture_repr": ("_repr_html_",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("vendimeter",),
    "reference_url": {"vendimeter": None},
    "plot_gallery": "True",
}

# ----------------------------------------------------------------------------------------------------------- the pages

html_theme = "pydata_sphinx_theme"
html_title = "Vendimeter"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "logo": {"text": "Vendimeter", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"
