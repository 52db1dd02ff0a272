"""Contains the texts of the simulated agents, by domain. Sessions are composed from these texts."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Domain:
    """A field of work.

    The texts contain the placeholders `{place}`, `{thing}`, `{name}`, `{day}`, `{ref}`, `{n}` and `{m}`, which get new
    values for every case.
    """

    name: str
    """The `task_domain` of the domain's traces."""
    app: str
    tools: tuple[str, ...]
    places: tuple[str, ...]
    things: tuple[str, ...]
    names: tuple[str, ...]
    days: tuple[str, ...]
    asks: tuple[str, ...]
    """Questions and tasks of users."""
    thoughts: tuple[str, ...]
    findings: tuple[str, ...]
    setbacks: tuple[str, ...]
    """Descriptions of a failure and of the agent's next attempt."""
    answers: tuple[str, ...]
    """The answer to each of `asks`."""
    evasions: tuple[str, ...]
    """Answers that miss the question."""

    def case(self, rng: random.Random) -> dict[str, str]:
        """Returns random values for the placeholders of the texts."""
        return {
            "place": rng.choice(self.places),
            "thing": rng.choice(self.things),
            "name": rng.choice(self.names),
            "day": rng.choice(self.days),
            "ref": "".join(rng.choice("ABCDEFGHJKLMNPRSTUVWXYZ") for _ in range(3)) + str(rng.randrange(100, 1000)),
            "n": str(rng.randrange(11, 99)),
            "m": str(rng.randrange(101, 999)),
        }


DOMAINS = (
    Domain(
        name="travel",
        app="concierge",
        tools=("search_flights", "get_fare_rules", "hold_seat", "rebook", "send_itinerary"),
        places=("Lisbon", "Seoul", "Nairobi", "Oslo", "Quito", "Jeju", "Tbilisi", "Hanoi", "Porto", "Kyoto"),
        things=("window seat", "bicycle box", "sleeping berth", "infant fare", "rail pass", "cello case"),
        names=("Amina", "Joon-ho", "Sofia", "Tariq", "Wren", "Yuki", "Mateo", "Ingrid"),
        days=("Monday", "Tuesday", "Thursday", "Friday", "Saturday", "Sunday"),
        asks=(
            "Move booking {ref} to {place} and keep the {thing} for {name}.",
            "Find {name} a cheaper way to {place} on {day}, below {m} euros.",
            "The connection via {place} was cancelled; get {name} home by {day}.",
            "Which of our {n} delegates still lack a {thing} to {place}?",
        ),
        thoughts=(
            "Fare class {ref} allows one change; the {thing} must be asked for separately.",
            "{place} has two airports, and only the smaller one takes a {thing}.",
            "Leaving on {day} saves {m} euros but costs a night near the station.",
            "{name} holds status with the alliance, so the waiver may apply to all {n} legs.",
            "An overnight train towards {place} arrives before the first departure would.",
            "Codeshare number {m} hides a carrier that {name} has refused before.",
        ),
        findings=(
            "{n} departures towards {place}, the earliest at dawn, none with a {thing}.",
            "Rule {ref}: refundable until {day}, penalty {m} afterwards.",
            "Seat map {n} shows a free row beside {name}'s colleague.",
            "The carrier confirms the {thing} against voucher {ref}.",
            "Waiting list position {n}; clears on {day} in most weeks.",
        ),
        setbacks=(
            "The hold on {ref} expired while paying; asked the other office to release it again.",
            "Search for {place} timed out after {m} milliseconds; narrowed it to {day} only.",
            "The {thing} was sold out in that cabin; looked one cabin up and found {n}.",
            "{name}'s passport number was rejected as too short; read it from the profile instead.",
            "Carrier {m} does not file fares to {place} publicly; queried the consolidator.",
        ),
        answers=(
            "Booking {ref} now goes to {place} with the {thing} for {name}.",
            "{name} travels to {place} on {day} under booking {ref}, for less than {m} euros.",
            "{name} is home by {day} without the connection via {place}; the new booking is {ref}.",
            "Of the {n} delegates to {place}, only {name} still lacks a {thing}.",
        ),
        evasions=("Please contact the airline.", "Several options exist, depending on preferences."),
    ),
    Domain(
        name="code_review",
        app="reviewer",
        tools=("read_diff", "run_tests", "search_code", "blame", "post_comment"),
        places=("parser", "scheduler", "billing module", "cache layer", "importer", "session store", "router"),
        things=("race", "leak", "off-by-one", "unchecked cast", "dead branch", "missing index", "retry storm"),
        names=("priya", "olek", "mai", "dmitri", "zoe", "hassan", "lucia"),
        days=("before freeze", "in sprint nine", "after the rollback", "since release two", "on the nightly build"),
        asks=(
            "Review change {ref} by {name}: does it fix the {thing} in the {place}?",
            "Why does the {place} fail {n} tests {day}?",
            "Find who introduced the {thing} around line {m} of the {place}.",
            "Suggest a smaller patch than {ref} for the {place}.",
        ),
        thoughts=(
            "A {thing} at line {m} can only show under two writers, so {name}'s test never sees it.",
            "Change {ref} moves the lock out of the loop; what about readers in the {place}?",
            "The {place} copies {n} kilobytes for each call, which hides the real cost {day}.",
            "If the guard goes first the {thing} disappears and the {place} stays simple.",
            "{name} kept the old signature, hence {m} callers compile yet behave otherwise.",
            "Coverage fell {day}; the uncovered lines are those that {ref} touches.",
        ),
        findings=(
            "{n} of {m} tests fail, all of them in the {place}.",
            "Line {m} was last changed by {name} in {ref}, {day}.",
            "No other caller of the {place} relies on the {thing}.",
            "The profile shows {n} percent of the time in one comparison.",
            "Bisect ends at {ref}: a rename that lost a default.",
        ),
        setbacks=(
            "The test runner crashed with signal {n}; reran with one process.",
            "Blame stopped at a merge of {ref}; followed the second parent.",
            "Search for the {thing} gave {m} matches; limited it to the {place}.",
            "Comment refused as outdated because {name} pushed again; rebased the position.",
            "The container ran out of disk {day}; removed {n} old layers and tried again.",
        ),
        answers=(
            "Change {ref} removes the {thing}, yet line {m} of the {place} needs a lock; {name} should add a test.",
            "The {place} breaks {day} because {ref} lost a default; restoring it makes all {n} tests pass.",
            "{name} introduced the {thing} at line {m} of the {place} with change {ref}.",
            "A guard at line {m} of the {place} is enough in place of {ref}.",
        ),
        evasions=("Looks good to me.", "The code could be cleaner in places."),
    ),
    Domain(
        name="finance",
        app="ledger-desk",
        tools=("get_statement", "convert_currency", "match_invoice", "flag_transfer", "file_report"),
        places=("Singapore", "Zurich", "Lagos", "Santiago", "Toronto", "Busan", "Vienna"),
        things=("wire", "refund", "dividend", "chargeback", "lease payment", "deposit", "coupon"),
        names=("Halden", "Okafor", "Brandt", "Seo", "Marchetti", "Novak", "Quispe"),
        days=("at quarter end", "in week seven", "on settlement day", "after the audit", "on the value date"),
        asks=(
            "Reconcile invoice {ref} of {name} with the {thing} from {place}.",
            "Explain the {m} dollar gap in the {place} account {day}.",
            "Is the {thing} of {name} above the reporting limit of {n} thousand?",
            "List every {thing} to {place} that lacks an approval {day}.",
        ),
        thoughts=(
            "The {thing} was booked gross, whereas {name} invoices net of {n} percent tax.",
            "{place} settles two days later, so {ref} belongs to the next period.",
            "A rounding rule could explain {m}, though never the sign.",
            "Two approvers were needed {day}; the log of {place} names one.",
            "If {name} paid twice, the second {thing} must share its reference with {ref}.",
            "The rate used {day} is the midpoint; the contract says the closing one.",
        ),
        findings=(
            "Statement {n} lists the {thing} under {ref}, {m} short.",
            "The closing rate for {place} differs by {n} basis points.",
            "{name} has {m} open items, the oldest from {place}.",
            "Approval {ref} was given {day} by a deputy.",
            "No {thing} above {n} thousand left {place}.",
        ),
        setbacks=(
            "The statement feed of {place} was empty; fetched the scanned copy {ref}.",
            "Conversion refused an unknown code; mapped {name}'s legacy symbol by hand.",
            "Matching found {n} candidates; narrowed them by the {thing} amount {m}.",
            "The filing service was closed {day}; queued the report under {ref}.",
            "Ledger {m} was locked by another close; waited and read a snapshot.",
        ),
        answers=(
            "Invoice {ref} matches the {thing} from {place}; the {m} left over is tax withheld from {name}.",
            "The gap of {m} dollars comes from the rate used {day}; correcting {ref} in {place} closes it.",
            "The {thing} of {name} is below the limit of {n} thousand, so no report is due.",
            "One {thing} to {place} lacks an approval {day}: {ref} of {name}.",
        ),
        evasions=("The accounts look plausible.", "An expert should have a look."),
    ),
    Domain(
        name="customer_service",
        app="상담봇",
        tools=("주문조회", "배송조회", "환불신청", "재고확인", "상담이력"),
        places=("서울 강서", "부산 해운대", "대전 유성", "광주 북구", "제주 애월", "인천 송도", "강릉 교동"),
        things=("무선 이어폰", "전기 주전자", "등산화", "공기 청정기", "유아용 의자", "키보드", "우산"),
        names=("지민 고객님", "서연 고객님", "도윤 고객님", "하은 고객님", "민준 고객님", "유진 고객님"),
        days=("월요일", "화요일 오전", "수요일 저녁", "금요일", "주말", "공휴일"),
        asks=(
            "{name}이 주문 {ref}의 {thing} 배송이 왜 늦는지 물어봅니다.",
            "{place} 매장에서 산 {thing}을 {day}까지 환불해 주세요.",
            "{thing} 색상을 바꾸고 {place}(으)로 다시 보내 주세요.",
            "{name}의 적립금 {m}점이 사라진 이유를 알려 주세요.",
        ),
        thoughts=(
            "주문 {ref}은 두 상자로 나뉘어 하나만 출고된 것 같다.",
            "{place} 물류 창고는 {day}에 쉬므로 하루가 더 걸린다.",
            "{thing}은 개봉하면 교환만 되지만 불량이면 환불도 된다.",
            "{name}은 작년에 같은 일로 {n}번 연락했으니 먼저 사과해야 한다.",
            "적립금 {m}점은 만료가 아니라 취소된 결제 때문에 빠졌을 수 있다.",
            "송장 번호가 바뀌었다면 {place} 기사에게 직접 확인하는 편이 빠르다.",
        ),
        findings=(
            "{ref}: {day} 출고, 현재 {place} 터미널, {n}번째 배송지.",
            "{thing} 재고 {n}개, 다음 입고는 {day}.",
            "환불 한도 {m}원, 승인 대기 없음.",
            "{name} 상담 기록 {n}건, 마지막은 {place} 매장 방문.",
            "적립 내역에 {ref} 결제 취소가 남아 있음.",
        ),
        setbacks=(
            "배송 조회가 {m}초 동안 응답하지 않아 택배사 화면에서 다시 찾았다.",
            "환불 신청이 중복으로 거절되어 {ref} 요청을 먼저 취소했다.",
            "{place} 재고가 음수로 나와 다른 창고 수량으로 확인했다.",
            "전화 연결이 끊겨 {name}에게 문자로 안내했다.",
            "{thing} 상품 코드가 바뀌어 예전 코드 {m}로 검색했다.",
        ),
        answers=(
            "{name}, 주문 {ref}의 {thing} 배송은 물류 창고 휴무로 늦었고 {day}에 도착합니다.",
            "{place} 매장에서 산 {thing} 환불 {m}원은 {day}까지 처리되며 접수 번호는 {ref}입니다.",
            "색상을 바꾼 {thing}은 {day}에 {place}(으)로 도착합니다. 주문 번호는 {ref}입니다.",
            "{name}, 적립금 {m}점은 주문 {ref}의 결제가 취소되어 빠졌습니다.",
        ),
        evasions=("잠시만 기다려 주세요.", "고객 센터로 문의해 주시기 바랍니다."),
    ),
    Domain(
        name="research",
        app="librarian",
        tools=("search_papers", "fetch_pdf", "extract_table", "cite", "translate"),
        places=("coral reefs", "alpine soils", "harbour cranes", "bronze alloys", "sleep clinics", "peat bogs"),
        things=("meta-analysis", "cohort", "calibration curve", "field survey", "ablation", "preprint"),
        names=("Ferrante", "Lindqvist", "Achebe", "Kowalski", "Rahman", "Ito"),
        days=("last decade", "since 2019", "in the wet season", "over nine winters", "before the flood"),
        asks=(
            "What did {name} measure about {place} {day}, and does the {thing} hold?",
            "Find {n} sources on {place} that disagree with {ref}.",
            "Summarise the {thing} by {name} in {m} words.",
            "Extract the numbers on {place} from table {n} of {ref}.",
        ),
        thoughts=(
            "{name} reports a median where the {thing} of {ref} needs a mean.",
            "Work on {place} {day} mixes two instruments; only one was calibrated.",
            "With {n} sites the interval must be wider than {m} suggests.",
            "A retraction note would explain why {ref} vanished from the index.",
            "The {thing} counts each of the {m} samples twice if {name}'s appendix is right.",
            "Older reviews call {place} by another name, so the query misses them.",
        ),
        findings=(
            "{m} hits on {place}, {n} of them peer reviewed.",
            "Table {n} of {ref} gives effect sizes without errors.",
            "{name} thanks a funder that sells the instrument.",
            "The {thing} covers {place} {day} and excludes islands.",
            "Two of {n} figures in {ref} share an axis by mistake.",
        ),
        setbacks=(
            "The file of {ref} was behind a wall; found the author's copy.",
            "Page {m} was a scan without text; translated the caption instead.",
            "Query on {place} was too broad; added the {thing} and the years.",
            "{name} has a namesake in botany; filtered by affiliation {n}.",
            "The table parser split rows wrongly; gave it {n} columns by hand.",
        ),
        answers=(
            "{name} found an effect on {place} {day}, but the {thing} in {ref} rests on {n} sites.",
            "{n} sources on {place} disagree with {ref}; the {thing} by {name} is the strongest.",
            "The {thing} by {name}: of {m} samples, {n} support the effect on {place}.",
            "Table {n} of {ref} has {m} samples on {place}, without errors.",
        ),
        evasions=("More research is needed.", "Opinions on this differ widely."),
    ),
)
