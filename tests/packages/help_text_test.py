# SPDX-License-Identifier: Apache-2.0
"""What is read from a --help."""

import unittest

from deploy.packaging import completion, help_text, man_pages
from tests import report

_HELP = """\
Decides something. It does more.
  kill-it: what happens then?

Usage: covey decide [OPTIONS]

Options:
  -h,--help                   Print this help message and exit
  --rate TEXT                 .5 or `more` of it's worth [COVEY_RATE=a=b]
  --exactly-as-wide-as-it TEXT help after one space [COVEY_EXACTLY=]
  --far-too-wide-for-the-column TEXT
                              on a line of its own
  --all                       all of them [COVEY_ALL=false]

After the options: show [NAME] | delete NAME   NAME of a thing
"""


class HelpTextTest(unittest.TestCase):
    def setUp(self):
        self.page = help_text.page_of("covey decide", _HELP)

    def test_options(self):
        self.assertEqual([
            help_text.Option(["-h", "--help"], "", "Print this help message and exit"),
            help_text.Option(["--rate"], "TEXT", ".5 or `more` of it's worth", "COVEY_RATE", "a=b"),
            help_text.Option(["--exactly-as-wide-as-it"], "TEXT", "help after one space",
                             "COVEY_EXACTLY"),
            help_text.Option(["--far-too-wide-for-the-column"], "TEXT", "on a line of its own"),
            help_text.Option(["--all"], "", "all of them", "COVEY_ALL", "false"),
        ], self.page.options)

    def test_the_rest(self):
        self.assertEqual("Decides something. It does more.", self.page.description)
        self.assertEqual("Decides something", self.page.summary)
        self.assertEqual([("kill-it", "what happens then?")], self.page.choices)
        self.assertEqual("show [NAME] | delete NAME", self.page.arguments)
        self.assertEqual("NAME of a thing", self.page.arguments_help)
        self.assertEqual(["kill-it", "show", "delete"], self.page.words())

    def test_refuses_a_line_that_it_does_not_understand(self):
        with self.assertRaisesRegex(ValueError, "no option in the line 'Notes: none'"):
            help_text.page_of("covey decide", _HELP + "Notes: none\n")
        with self.assertRaisesRegex(ValueError, "no options"):
            help_text.page_of("covey decide", "Decides.\n")
        with self.assertRaisesRegex(ValueError, "no commands"):
            help_text.covey_page("usage: covey COMMAND [OPTION...]\n")

    def test_commands_of_two_words(self):
        first = help_text.covey_page("usage: covey COMMAND [OPTION...]\n\nCovey.\n\n"
                                     "  take         takes\n  take-back    takes back\n")
        self.assertEqual([("take", "takes"), ("take-back", "takes back")], first.commands)

    def test_a_letter_of_the_text_is_no_command_of_man(self):
        text = man_pages.man_page(self.page, "1.2.3", 0, [self.page])
        self.assertIn("\n\\&.5 or \\(gamore\\(ga of it\\(aqs worth\n", text)
        self.assertIn("COVEY\\-DECIDE 1 1970-01-01", text)

    def test_completion_has_the_words_of_each_command(self):
        first = help_text.covey_page("usage: covey COMMAND [OPTION...]\n\n  decide  decides\n")
        script = completion.bash([first, self.page])
        self.assertIn("words='kill-it show delete'", script)
        self.assertIn("--rate --exactly-as-wide-as-it", script)


if __name__ == "__main__":
    report.main()
