"""The page in a real browser: views with no, three and 200 queries, on a phone, in the dark, for who may see little."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.dags.page.conftest import SHOTS, drawn
from tests.dags.page.made import MANY

VIEWS = {
    "overview": "",
    "graph": "?as=graph",
    **{
        f"query {tab}": f"?query=shop/revenue&tab={tab}"
        for tab in ("how", "slices", "results", "plan", "corrections", "definition")
    },
    **{f"unbegun {tab}": f"?query=shop/sent_back&tab={tab}" for tab in ("how", "slices", "results", "corrections")},
    **{f"stream {tab}": f"?stream=shop/orders&tab={tab}" for tab in ("how", "admissions", "quarantine", "definition")},
}
BRIEF = {  # what each view has to say
    "overview": "Streams and relations",
    "graph": "Who reads whom",
    "query how": "revenue is up to date and waits for orders",
    "query slices": "compute, s",
    "query results": "Over time",
    "query plan": "Update patterns",
    "query corrections": "late elements of orders",
    "query definition": "GROUP BY kind",
    "unbegun how": "sent_back waits for the first heartbeat of returns",
    "unbegun slices": "not processed any slice",
    "unbegun results": "no results yet",
    "unbegun corrections": "Nothing that it had published",
    "stream how": "source version admitted",
    "stream admissions": "kept out",
    "stream quarantine": "timestamp column ordered is NULL",
    "stream definition": "HEARTBEAT FOR ordered",
}


def names(page):
    return page.locator("section[aria-labelledby=queries] td.name > a").all_text_contents()


def kinds(page):
    """By name the kinds of its states, as they stand."""
    return {
        row.locator("td.name > a").inner_text(): row.locator("td.state .badge").evaluate_all(
            "found => found.map(badge => badge.dataset.kind)"
        )
        for row in page.locator("tbody tr").all()
    }


def test_no_query_at_all(use, visitor):
    use("0")
    page = visitor.open()
    assert "Put a folder with .cql files under queries/" in page.inner_text("main")
    assert "no stream and no single query" in visitor.open("?dag=strange").inner_text("main")


def test_three_queries_in_trouble_and_not(use, visitor, airflow):
    use("3")
    page = visitor.open()
    assert names(page) == ["surges", "sent_back", "revenue"]
    assert kinds(page)["surges"] == ["incident", "warned", "behind"]
    assert kinds(page)["sent_back"] == ["never", "waiting"]
    assert kinds(page)["revenue"] == ["current"]
    streams = page.locator("section[aria-labelledby=streams] tr").all_inner_texts()
    assert any("orders" in row and "15" in row for row in streams)  # kept out


def test_what_airflow_says_of_the_dags_is_joined(use, visitor, airflow):
    use("3")
    airflow.missing.add("shop__surges")
    airflow.failed.update({"shop__revenue", "shop__hourly"})
    airflow.dags["shop__admit_orders"] = {"is_paused": True}
    airflow.dags["shop__admit_returns"] = {"is_stale": True}
    page = visitor.open()
    found = kinds(page)
    assert found["surges"][:2] == ["gone", "incident"]
    assert found["revenue"][0] == found["sent_back"][0] == "failed"  # the group's DAG runs sent_back
    assert found["orders"][0] == "paused"
    assert found["returns"][0] == "gone"
    assert "current" not in found["returns"]


def test_the_tab_of_a_dag_shows_what_it_runs(use, visitor):
    use("3")
    assert names(visitor.open("?dag=shop__hourly")) == ["sent_back"]
    assert visitor.open("?dag=shop__admit_orders").locator("h1").inner_text().startswith("orders")


def test_two_hundred_are_searched_filtered_and_sorted(use, visitor):
    use("200")
    page = visitor.open()
    assert len(names(page)) == MANY
    page.wait_for_timeout(200)
    first = page.locator("section[aria-labelledby=queries] td.state .badge").first
    assert first.get_attribute("data-kind") in ("warned", "never", "waiting")
    page.fill("input[name=search]", "q19")
    assert sorted(names(page)) == [f"q{i}" for i in range(190, 200)]
    page.fill("input[name=search]", "")
    page.click("[data-filter=trouble]")
    trouble = names(page)
    assert "q007" in trouble
    assert "q003" in trouble
    assert "q000" not in trouble
    page.select_option("select[name=filter]", "warned")
    assert sorted(names(page)) == [f"q{i:03}" for i in range(MANY) if i % 40 == 3 and i % 50 != 7]
    page.select_option("select[name=filter]", "all")
    page.click("th button:has-text('lag') >> nth=0")
    page.locator("th[aria-sort]").first.wait_for()
    assert int(names(page)[1][1:]) % 5 == 1  # an hour behind the others
    page.select_option("select[name=sort]", "name")
    assert names(page) == [f"q{i:03}" for i in range(MANY)]
    assert "sort=name" in page.url
    page.select_option("select[name=as]", "graph")
    assert page.locator("svg.graph a").count() == MANY + 4


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_wide_narrow_and_dark(use, visitor, view):
    """A window as narrow as a phone is not overflowed, and the browser has nothing to complain of."""
    use("3")
    page = visitor.open(VIEWS[view])
    page.get_by_text(BRIEF[view]).first.wait_for()
    assert page.evaluate("window.hacked") is None
    for width in (700, 380):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
    page.emulate_media(color_scheme="dark")
    page.locator("html[data-theme=dark]").wait_for()
    back, text = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert back != text


def test_the_theme_of_airflow_is_followed_within_its_frame(use, visitor, served):
    use("3")
    page = visitor.open(path="/plugin/continuous-queries")
    frame = page.frame_locator("iframe")
    frame.locator("h1").wait_for()
    inside = page.frames[1]
    assert inside.evaluate("document.documentElement.dataset.theme") == "light"
    page.evaluate("localStorage.setItem('theme', 'dark')")
    frame.locator("html[data-theme=dark]").wait_for()
    page.evaluate("localStorage.setItem('timezone', '\"Asia/Tokyo\"')")
    frame.locator("td.name > a", has_text="revenue").click()
    assert "GMT+9" in frame.locator("dd time small").first.inner_text()
    frame.get_by_text("DAG in Airflow").click()
    page.wait_for_url("**/dags/shop__revenue")  # out of the frame


def test_times_are_said_for_people_here_and_in_utc(use, visitor):
    use("3")
    page = visitor.open("?query=shop/revenue")
    page.get_by_text("committed up to").first.wait_for()
    time = page.locator("dd time").first
    assert "hour ago" in time.inner_text()
    assert "UTC" in time.inner_text()
    assert "GMT+" in time.inner_text()


def test_who_is_not_logged_in_sees_nothing(use, visitor):
    use("3")
    visitor.refused = True
    page = visitor.open(user=None)
    assert "revenue" not in page.content()
    page = visitor.open("?query=shop/revenue")
    page.context.clear_cookies()
    page.click("[data-tab=plan]")
    page.get_by_text("You are not logged in").first.wait_for()


def test_who_may_see_one_dag_sees_one_query(use, visitor):
    use("3")
    visitor.refused = True
    page = visitor.open(user="one")
    assert names(page) == ["revenue"]
    text = page.inner_text("main")
    assert "surges" not in text
    assert "broken" not in text
    for where in ("?query=shop/surges", "?stream=shop/orders", "?query=shop/%3Cimg%20src=x%20onerror=alert(1)%3E"):
        assert "that you may see" in visitor.open(where, user="one").inner_text("main")
    page = visitor.open("?dag=shop__revenue", user="one")
    assert page.locator("h1").inner_text().startswith("revenue")
    assert all(button.is_disabled() for button in page.locator("header .buttons button").all())


def test_names_texts_and_data_are_text(use, visitor):
    use("3")
    for where, evil in (
        ("", "onerror=\"window.hacked='i'"),
        ("?query=shop/surges", "onerror=\"window.hacked='check'"),
        ("?query=shop/revenue&tab=results", "onerror=\"window.hacked='value'"),
        ("?query=shop/revenue&tab=corrections", "window.hacked='corrected'"),
        ("?query=shop/revenue&tab=definition", "onerror=\"window.hacked='comment'"),
        ("?stream=shop/orders&tab=quarantine", "onerror=\"window.hacked='reason'"),
    ):
        page = visitor.open(where)
        page.get_by_text(evil).first.wait_for()
        assert page.evaluate("window.hacked") is None, where
        assert not page.locator("main img, main script").count(), where


def test_labels_of_the_plan_stand_whole_where_one_points(use, visitor):
    use("3")
    page = visitor.open("?query=shop/surges&tab=plan")
    long = page.locator("svg.plan .box").filter(has_text="a long text").first
    long.hover()
    page.get_by_text("a long text that no box of a picture holds").first.wait_for()
    page.locator("svg.plan .flow").first.focus()
    assert ": rows " in page.locator(".said").inner_text() or "row" in page.locator(".said").inner_text()


def test_an_instant_and_a_plot(use, visitor):
    use("3")
    visitor.refused = True
    page = visitor.open("?query=shop/revenue&tab=results")
    page.locator(".rows-at tbody tr").first.wait_for()
    assert page.locator(".rows-at tbody tr").count() == 3
    page.fill("input[name=at]", "1990-01-01")
    page.click("text=Show")
    page.get_by_text("No row holds then.").wait_for()
    page.fill("input[name=at]", "2190-01-01")
    page.click("text=Show")
    page.get_by_text("known up to its committed instant only").nth(1).wait_for()
    page.click("button:text-is('Now')")
    page.locator(".over-time path.step").nth(2).wait_for()
    page.select_option("select[name=as]", "bars")
    page.locator(".over-time rect.bar").first.wait_for()
    assert page.locator(".over-time rect.bar").count() == 90
    assert page.locator(".over-time rect.bar.open").count() == 3


def test_buttons_go_through_airflow_and_its_permissions(use, visitor, airflow):
    use("3")
    page = visitor.open("?query=shop/revenue")
    page.click("text=Run now")
    page.get_by_text("A run was started").wait_for()
    page.click("text=Backfill …")
    page.fill("input[name=from]", "2024-01-01T00:00")
    page.fill("input[name=to]", "2024-01-03T12:00")
    page.click("text=How many slices?")
    page.get_by_text("3 slices.").wait_for()
    page.locator("dialog button.main").click()
    page.get_by_text("Backfill 5 was started").wait_for()
    page.click("text=Pause DAG")
    page.get_by_text("shop__revenue is paused").wait_for()
    page = visitor.open("?stream=shop/orders&tab=quarantine")
    page.locator("tbody input[type=checkbox]").first.check()
    page.click("text=Release 1")
    page.fill("input[name=column]", "price")
    page.fill("input[name=value]", "3")
    page.locator("dialog button.main").click()
    page.get_by_text("The release was started").wait_for()
    ids = airflow.calls[-1][2]["conf"]["release"]["ids"]
    assert airflow.calls == [
        ("POST", "dags/shop__revenue/dagRuns", {"logical_date": None, "conf": {}}),
        *(
            ("POST", path, {
                "dag_id": "shop__revenue", "from_date": "2024-01-01T00:00:00Z", "to_date": "2024-01-03T12:00:00Z",
                "reprocess_behavior": "completed", "max_active_runs": 1, "run_backwards": False, "dag_run_conf": {},
            })
            for path in ("backfills/dry_run", "backfills")
        ),
        ("PATCH", "dags/shop__revenue", {"is_paused": True}),
        ("POST", "dags/shop__admit_orders/dagRuns",
         {"logical_date": None, "conf": {"release": {"ids": ids, "set": {"price": "3"}}}}),
    ]  # fmt: skip
    assert ids[0].startswith("6-")
    page = visitor.open("?stream=shop/orders&tab=quarantine", user="viewer")
    page.locator("tbody input[type=checkbox]").first.check()
    assert all(button.is_disabled() for button in page.locator(".buttons button").all())


def test_a_query_of_a_group_is_paused_and_a_heartbeat_moved_by_our_own_routes(use, visitor, airflow):
    use("3")
    visitor.refused = True
    page = visitor.open("?query=shop/sent_back")
    page.click("text=Pause query")
    page.get_by_text("sent_back: paused").wait_for()
    page.click("text=Resume query")
    page.get_by_text("sent_back: resumed").wait_for()
    page = visitor.open("?stream=shop/returns")
    page.click("text=Move heartbeat …")
    page.fill("input[name=instant]", "no instant")
    page.locator("dialog button.main").click()
    page.locator("dialog .note.bad").wait_for()
    assert (
        "no instant" in page.locator("dialog .note.bad").inner_text()
        or "admit" in page.locator("dialog .note.bad").inner_text()
    )
    assert not airflow.calls


def test_a_page_that_stays_open_says_when_it_is_old(use, visitor):
    use("3")
    visitor.refused = True
    page = visitor.open()
    page.context.clear_cookies()
    page.evaluate("dispatchEvent(new Event('changed'))")
    page.get_by_text("What you see is old").wait_for()
    drawn(page)


@pytest.mark.skipif(SHOTS not in os.environ, reason=f"pictures for the documents, where {SHOTS} names a folder")
@pytest.mark.parametrize(
    ("name", "home", "where", "width", "height", "dark"),
    [
        ("overview", "tidy", "", 1200, 760, False),
        ("phone", "tidy", "", 390, 760, True),
        ("graph", "200", "?as=graph&search=q16", 1000, 760, False),
        ("how", "tidy", "?query=shop/surges", 1100, 800, False),
        ("slices", "tidy", "?query=shop/revenue&tab=slices", 1100, 700, True),
        ("results", "tidy", "?query=shop/revenue&tab=results", 1100, 900, False),
        ("plan", "tidy", "?query=shop/surges&tab=plan", 1000, 800, False),
        ("quarantine", "tidy", "?stream=shop/orders&tab=quarantine", 1100, 760, False),
    ],
)
def test_pictures_for_the_documents(use, visitor, name, home, where, width, height, dark):
    use(home)
    page = visitor.open(where, width=width, height=height, dark=dark)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=str(Path(os.environ[SHOTS]) / f"page-{name}.png"))
