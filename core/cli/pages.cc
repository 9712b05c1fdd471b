// SPDX-License-Identifier: MIT
// Man page and shell completion, made by walking the command line's description.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "cli/cli.h"

namespace feign {
namespace {

// Not what other commands start.
bool shown(const CLI::App* sub) { return !sub->get_group().empty(); }

std::string roff(std::string text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n'))
      out += std::string("\\&") + c;
    else
      out += c;
  }
  return out;
}

std::string usage_of(const CLI::Option& o) {
  std::string out = o.get_positional() ? o.get_name() : o.get_name(false, true);
  const std::string type = o.get_type_name();
  if (!o.get_positional() && o.get_items_expected_max() > 0 && !type.empty()) out += " " + type;
  return out;
}

void options(const CLI::App& app, std::string& out) {
  for (const CLI::Option* o : app.get_options()) {
    out += ".TP\n.B " + roff(usage_of(*o)) + "\n" + roff(o->get_description());
    if (!o->get_default_str().empty()) out += " [" + roff(o->get_default_str()) + "]";
    out += "\n";
  }
}

std::vector<std::string> words(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* o : app.get_options())
    for (const std::string& name : o->get_lnames()) out.push_back("--" + name);
  for (const CLI::App* sub : app.get_subcommands(shown)) out.push_back(sub->get_name());
  return out;
}

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& s : list) out += (out.empty() ? "" : " ") + s;
  return out;
}

// What may follow an option, or a command, where that is one of a few words: the small ones of
// trace|depend|stream, or of block|cyclic|FILE.
std::string choices(const CLI::App& app) {
  std::map<std::string, std::set<std::string>> found;
  std::vector<const CLI::App*> apps{&app};
  for (const CLI::App* sub : app.get_subcommands(shown)) apps.push_back(sub);
  for (const CLI::App* a : apps)
    for (const CLI::Option* o : a->get_options()) {
      std::istringstream type(o->get_type_name());
      for (std::string word; std::getline(type, word, '|');)
        if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos)
          found[o->get_positional() ? a->get_name() : "--" + o->get_single_name()].insert(word);
    }
  std::string out;
  for (const auto& [before, words] : found)
    out += "    " + before + ") COMPREPLY=($(compgen -W '" + joined({words.begin(), words.end()}) +
           "' -- \"$cur\")); return;;\n";
  return out;
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string out = ".TH FEIGN 1 \"\" \"feign " FEIGN_VERSION
                    "\" \"User Commands\"\n.SH NAME\nfeign \\- " +
                    roff("replay what an application did to storage, and change it on the way") +
                    "\n.SH SYNOPSIS\n.B feign\n\\-\\-plugin NAME[,key=value...] ...\n.br\n";
  for (const CLI::App* sub : app.get_subcommands(shown)) {
    // Options come first: what follows COMMAND is COMMAND's.
    out += ".B feign " + roff(sub->get_name()) + "\n[options]";
    for (const CLI::Option* o : sub->get_options())
      if (o->get_positional()) {
        const std::string name =
            roff(o->get_name()) + (o->get_items_expected_max() > 1 ? "..." : "");
        out += " " + (o->get_required() ? name : "[" + name + "]");
      }
    out += "\n.br\n";
  }
  out += ".SH DESCRIPTION\n" + roff(app.get_description()) + "\n.SH OPTIONS OF THE PIPELINE FORM\n";
  options(app, out);
  for (const CLI::App* sub : app.get_subcommands(shown)) {
    std::string title = "feign " + sub->get_name();
    std::transform(title.begin(), title.end(), title.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    out += ".SH " + roff(title) + "\n" + roff(sub->get_description()) + "\n";
    options(*sub, out);
  }
  out +=
      ".SH EXIT STATUS\n.TP\n.B 0\nDone.\n.TP\n.B 1\nThe replay ran, but fidelity is under "
      "\\-\\-require, or it ended early; the lab has runs that failed; the plug\\-in breaks the "
      "contract.\n"
      ".TP\n.B 2\nUsage, or bad input; nothing was done or left half\\-written.\n"
      ".TP\n.B feign record\nCOMMAND's own; 128 and the signal's number if a signal ended it; 2 if "
      "recording could not begin.\n"
      ".SH ENVIRONMENT\n.TP\n.B FEIGN_PLUGIN_PATH\nDirectories to look for plug\\-ins in first, "
      "with colons between.\n"
      ".TP\n.B FEIGN_DYGRAPHS\nThe directory with dygraph.min.js and dygraph.css, for pages with "
      "plots.\n"
      ".TP\n.B TMPDIR\nWhere the plan of a replay is kept while it runs.\n";
  return out;
}

std::string bash_completion(const CLI::App& app) {
  std::string out =
      "# bash completion for feign; load it with: source <(feign completion bash)\n_feign() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} sub=\n"
      "  [[ ${COMP_CWORD} -gt 1 ]] && sub=${COMP_WORDS[1]}\n"
      "  [[ $cur == -* ]] && prev=\n"
      "  case $prev in\n"
      "    --plugin|-p|--with|--provider|--replayer|--to|inspect)\n"
      "      COMPREPLY=($(compgen -W \"$(feign inspect --names 2>/dev/null)\" -- \"$cur\") "
      "$(compgen -f -- \"$cur\")); return;;\n"
      "    --root) COMPREPLY=($(compgen -d -- \"$cur\")); return;;\n" +
      choices(app) +
      "  esac\n  if [[ $cur != -* && -n $sub ]]; then COMPREPLY=($(compgen -f -- \"$cur\")); "
      "return; fi\n"
      "  case $sub in\n";
  for (const CLI::App* sub : app.get_subcommands(shown))
    out += "    " + sub->get_name() + ") COMPREPLY=($(compgen -W '" + joined(words(*sub)) +
           "' -- \"$cur\"));;\n";
  out += "    *) COMPREPLY=($(compgen -W '" + joined(words(app)) +
         "' -- \"$cur\"));;\n  esac\n}\ncomplete -o filenames -F _feign feign\n";
  return out;
}

}  // namespace feign
